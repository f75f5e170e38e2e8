// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. The only file that names the library behind it (tl::expected), so
// that a change to std::expected is one edit. Monadic members of the library are not used.
#ifndef HALLMARK_ENGINE_BASE_RESULT_H_
#define HALLMARK_ENGINE_BASE_RESULT_H_

#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "engine/base/error.h"

namespace hallmark {

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using value_type = T;
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// Makes the error side of any Result: `return Fail(Code::kMalformed, "...", {.file = path});`.
inline tl::unexpected<Error> Fail(Code code, std::string message, Locator where = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where)});
}
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

namespace internal {
template <typename T>
T TakeValue(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace internal

}  // namespace hallmark

// Unwraps a Result or returns its error from the enclosing function:
//   const File file = TRY(File::Open(path));      TRY(CheckHeader(file));
#define TRY(expression)                                                                  \
  ({                                                                                     \
    auto try_result = (expression);                                                      \
    if (!try_result.has_value()) return ::hallmark::Fail(std::move(try_result).error()); \
    ::hallmark::internal::TakeValue(std::move(try_result));                              \
  })

#endif  // HALLMARK_ENGINE_BASE_RESULT_H_
