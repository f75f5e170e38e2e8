// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/layer_trace.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "conformance/cases/prompt_runs.h"
#include "engine/model/forward.h"
#include "engine/run/session.h"

namespace hallmark {

Result<LayerTrace> TraceLayers(const Session& session) {
  const Model& model = session.model();
  const std::vector<int32_t> prompt = BuiltInPrompt(session.drawable_ids());
  const auto tokens =
      std::min<size_t>({static_cast<size_t>(kTraceTokens), prompt.size(),
                        static_cast<size_t>(std::max<int64_t>(model.config.max_positions, 1))});
  const auto ids = std::span(prompt).first(tokens);
  ForwardPass pass = TRY(ForwardPass::Create(model, kTraceTokens));
  Sequence sequence = TRY(Sequence::Create(*model.backend, model.config, session.options().kv));
  ForwardRequest request{.logits = LogitRows::kNone};
  for (size_t tap = 0; tap <= model.layers.size(); ++tap) {
    request.taps.push_back(static_cast<int>(tap));
  }
  LayerTrace trace;
  const auto output = pass.Run(sequence, ids, request);
  if (!output.has_value()) {
    if (output.error().code != Code::kOutOfRange) return Fail(output.error());
    trace.refused = output.error();
    return trace;
  }
  for (size_t tap = 0; tap < output->taps.size(); ++tap) {
    trace.rows += output->taps[tap].size() / static_cast<size_t>(model.config.hidden);
    float largest = 0;
    for (const float value : output->taps[tap]) {
      if (std::isfinite(value)) {
        largest = std::max(largest, std::fabs(value));
      } else if (!trace.first_not_finite) {
        trace.first_not_finite = static_cast<int>(tap) - 1;
      }
    }
    trace.largest.push_back(largest);
  }
  return trace;
}

}  // namespace hallmark
