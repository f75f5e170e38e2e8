// SPDX-License-Identifier: Apache-2.0
// Charts of the HTML report as inline SVG: bits of each layer, and the error of each layer's
// linears against the source model. Each has axis labels, a title and a description in words.
// Colours come from the page's style. Not a plotting library. Deterministic.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_REPORT_CHARTS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_REPORT_CHARTS_H_

#include <string>

#include "engine/base/json.h"

namespace hallmark {

// `layers`: [{"part", "bits", ...}], in order; "" when there is none.
std::string BitsChart(const Json& layers);

// `linears`: the source step's, [{"tensor", "nmse", "expected": {"least", "most"}, "in_band"}].
// One mark for each linear over its layer, on a logarithmic axis; the band reaches from the least
// to the most that any linear of the layer is expected to have, a cross is a linear outside its
// own. "" when nothing has an error to draw.
std::string ErrorChart(const Json& linears);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_REPORT_CHARTS_H_
