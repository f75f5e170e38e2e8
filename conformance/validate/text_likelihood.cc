// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/text_likelihood.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "engine/run/session.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

constexpr std::array<std::string_view, 3> kTexts = {
    "In the beginning God created the heaven and the earth. And the earth was without form, and "
    "void; and darkness was upon the face of the deep.",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i, add(i, i))\n",
    "One, two, three, four, five, six, seven, eight, nine, ten. 1 2 3 4 5 6 7 8 9 10 11 12"};

// -log softmax(row)[id], in double.
double NegativeLogLikelihood(std::span<const float> row, size_t id) {
  const double top = *std::ranges::max_element(row);
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - top);
  return std::log(sum) - (row[id] - top);
}

}  // namespace

Result<TextLikelihood> MeasureTexts(Session& session, const StepProgress& progress) {
  TextLikelihood out;
  const auto vocab = static_cast<size_t>(session.vocab_size());
  for (size_t i = 0; i < kTexts.size(); ++i) {
    if (progress) progress("texts", i, kTexts.size());
    const std::vector<int32_t> ids = TRY(session.tokenizer()->Encode(kTexts[i]));
    const auto drawable = [&session](int32_t id) { return id < session.drawable_ids(); };
    if (ids.size() < 2 || !std::ranges::all_of(ids, drawable)) continue;
    const std::vector<float> logits = TRY(session.Logits(ids));
    for (size_t at = 0; at + 1 < ids.size(); ++at) {
      out.sum_nll += NegativeLogLikelihood(std::span(logits).subspan(at * vocab, vocab),
                                           static_cast<size_t>(ids[at + 1]));
    }
    out.tokens += static_cast<int64_t>(ids.size()) - 1;
    ++out.texts;
  }
  if (progress) progress("texts", kTexts.size(), kTexts.size());
  return out;
}

}  // namespace hallmark
