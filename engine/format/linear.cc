// SPDX-License-Identifier: Apache-2.0
#include "engine/format/linear.h"

namespace hallmark {

std::string_view CodebookName(Codebook codebook) {
  switch (codebook) {
    case Codebook::k3inst:
      return "3inst";
    case Codebook::kMcg:
      return "mcg";
    case Codebook::kMul1:
      return "mul1";
  }
  return "3inst";
}

const std::string& LinearSource::name() const {
  return std::visit([](const auto& source) -> const std::string& { return source.name; }, weights);
}

}  // namespace hallmark
