// SPDX-License-Identifier: Apache-2.0
#include "engine/model/verify_window.h"

namespace hallmark {

Result<VerifyWindow> VerifyWindow::Create(const Model& model, int64_t max_rows) {
  VerifyWindow window;
  window.identity_ = model.backend->NewIdentity();
  window.max_rows_ = max_rows;
  window.records_.resize(model.layers.size());
  const auto allocate = [&](int64_t cols) {
    return model.backend->Allocate(static_cast<size_t>(max_rows * cols) * sizeof(float));
  };
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].kind != LayerKind::kDeltaNet) continue;
    window.records_[i].qkv = TRY(allocate(model.delta_net.channels()));
    window.records_[i].a = TRY(allocate(model.delta_net.value_heads));
    window.records_[i].b = TRY(allocate(model.delta_net.value_heads));
  }
  return window;
}

}  // namespace hallmark
