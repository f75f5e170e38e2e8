// SPDX-License-Identifier: Apache-2.0
// Elementary functions with fixed bits. libm picks variants by machine and changes between
// versions; these use only +, -, *, / and bit operations in a stated order, so that every machine
// gives the same result. Bounds below are checked by elementary_test.cc against libm in a wider
// type.
//
// Methods: exp by Cody-Waite reduction to |r| <= ln2/2 and a Taylor polynomial; log by the series
// of 2 atanh(f / (2 + f)) on [sqrt(1/2), sqrt(2)); sin and cos by a two-part pi/2 and Taylor
// series.
#ifndef HALLMARK_ENGINE_BASE_ELEMENTARY_H_
#define HALLMARK_ENGINE_BASE_ELEMENTARY_H_

namespace hallmark {

// e^x, within 2 ulp in the normal range. Overflow gives infinity, x < -104 gives 0, NaN stays NaN.
float Exp(float x);
// ln(1 + x) for x >= 0, within 3 ulp.
float Log1p(float x);
// 1 / (1 + e^-x), within 4 ulp for x > -87.
float Sigmoid(float x);
// x * sigmoid(x), as x / (1 + e^-x).
float Silu(float x);
// ln(1 + e^x), equal to x above 20.
float Softplus(float x);

// e^x, within 1 ulp in the normal range.
double Exp(double x);
// ln(x) for x > 0, within 1 ulp; 0 gives -infinity, negative or NaN gives NaN.
double Log(double x);

struct SinCosPair {
  float sin;
  float cos;
};
// For |angle| <= 2^20, within 1 ulp of fp32; the reduction is done in fp64.
SinCosPair SinCos(float angle);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_ELEMENTARY_H_
