// SPDX-License-Identifier: Apache-2.0
#include "engine/base/elementary.h"

#include "engine/base/elementary_inline.h"

namespace hallmark {

float Exp(float x) { return shared::Exp(x); }
float Log1p(float x) { return shared::Log1p(x); }
float Sigmoid(float x) { return shared::Sigmoid(x); }
float Silu(float x) { return shared::Silu(x); }
float Softplus(float x) { return shared::Softplus(x); }
double Exp(double x) { return shared::Exp(x); }
double Log(double x) { return shared::Log(x); }
SinCosPair SinCos(float angle) { return shared::SinCos(angle); }

}  // namespace hallmark
