// SPDX-License-Identifier: Apache-2.0
// Clause: text-exact
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "engine/text/normalizer.h"
#include "engine/text/unicode_gen.h"
#include "engine/text/unicode_ranges.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

bool HoldsInert(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = ReadUtf8(text);
    for (const CodePointRange& range : InertInNfc()) {
      if (step.code_point >= range.first && step.code_point <= range.last) return true;
    }
    text.remove_prefix(step.length);
  }
  return false;
}

std::string UnicodeLibraryNfc(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  RC_ASSERT(length >= 0);
  const std::string result(reinterpret_cast<char*>(out), static_cast<size_t>(length));
  std::free(out);
  return result;
}

RC_GTEST_PROP(NormalizerProperty, EqualsTheLibrarysNfcWhereVersionsAgree, ()) {
  const std::string text = DrawUnicodeText();
  RC_PRE(!HoldsInert(text));
  RC_ASSERT(NormalizeNfc(text).value() == UnicodeLibraryNfc(text));
}

RC_GTEST_PROP(NormalizerProperty, IsIdempotent, ()) {
  const std::string once = NormalizeNfc(DrawUnicodeText()).value();
  RC_ASSERT(NormalizeNfc(once).value() == once);
}

}  // namespace
}  // namespace hallmark
