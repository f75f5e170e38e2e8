// SPDX-License-Identifier: Apache-2.0
// The HTML report: what comes from files is text and never markup, and the charts draw what the
// facts say.
#include "conformance/validate/report_html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "conformance/validate/report_charts.h"
#include "conformance/validate/report_text.h"
#include "conformance/validate/validation.h"
#include "conformance/validate/validation_json.h"

namespace hallmark {
namespace {

size_t Times(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

Json Linear(const std::string& tensor, const Json& nmse, bool in_band) {
  return {{"tensor", tensor},
          {"nmse", nmse},
          {"expected", {{"least", 0.005}, {"middle", 0.006}, {"most", 0.02}}},
          {"in_band", in_band}};
}

TEST(ReportHtml, EveryTextOfAFileIsEscaped) {
  const std::string evil = "<script>alert('\"&\x1b\xE2\x80\xAE\xFF')</script>";
  Validation validation{.options = {.folder = evil, .drafter = evil}};
  validation.steps.push_back(
      {.step = "structure",
       .findings = {{.severity = Severity::kError,
                     .clause = "format-reject",
                     .check = "unknown-tensor",
                     .error = {.code = Code::kMismatch,
                               .message = evil,
                               .where = {.file = evil, .pointer = evil, .tensor = evil}},
                     .action = "Remove it."}},
       .facts = std::make_shared<const Json>(
           Json{{"<script>", "<script>"},
                {"list", {{{"name", "<script>"}}}},
                {"model", {{"layer_bits", {{{"part", "<script>"}, {"bits", 3}}}}}},
                {"tensors", {{"linears", {Linear("<script>", 0.01, true)}}}}})});
  const std::string html = ValidationHtml(ValidationJson(validation, "1"));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_GE(Times(html, "&lt;script&gt;alert(&#39;&quot;&amp;"), 6);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

TEST(ReportHtml, TheVerdictComesFirst) {
  Validation validation{.options = {.folder = "dir"}};
  validation.steps.push_back({.step = "structure"});
  validation.not_run = {"numbers"};
  const std::string html = ValidationHtml(ValidationJson(validation, "1"));
  EXPECT_LT(html.find("<h1>Accepted</h1>"), html.find("Nothing was found amiss"));
  EXPECT_NE(html.find("numbers <b>not run</b>"), std::string::npos);
  EXPECT_EQ(html.find("<svg"), std::string::npos);
}

TEST(ReportHtml, FactsNameTheirPlace) {
  const std::string html = HtmlOfFacts({{"a/b", {{"c~d", 1234567}}}, {"none", nullptr}}, "/x");
  EXPECT_NE(html.find("data-fact=\"/x/a~1b/c~0d\">1\xE2\x80\xAF"
                      "234\xE2\x80\xAF"
                      "567<"),
            std::string::npos);
  EXPECT_NE(html.find("data-fact=\"/x/none\">\xE2\x80\x94<"), std::string::npos);
}

TEST(ReportCharts, OneBarAPart) {
  Json layers = Json::array();
  for (int i = 0; i < 64; ++i) layers.push_back({{"part", std::to_string(i)}, {"bits", 3.25}});
  layers.push_back({{"part", "head"}, {"bits", 6}});
  const std::string svg = BitsChart(layers);
  EXPECT_EQ(Times(svg, "class=\"bar\""), 65);
  EXPECT_NE(svg.find("from 3.25 to 6"), std::string::npos);
  EXPECT_EQ(BitsChart(Json::array()), "");
}

TEST(ReportCharts, OneMarkALinearAndACrossOutsideItsBand) {
  const std::string svg = ErrorChart({Linear("model.layers.0.mlp.up_proj", 0.01, true),
                                      Linear("model.layers.0.mlp.down_proj", 0.5, false),
                                      Linear("model.layers.1.mlp.up_proj", nullptr, false),
                                      Linear("lm_head", 0.01, true)});
  EXPECT_EQ(Times(svg, "class=\"mark\""), 2);
  EXPECT_EQ(Times(svg, "class=\"out\""), 1);
  EXPECT_EQ(Times(svg, "class=\"band\""), 2);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(ErrorChart(Json::array({Linear("a", 0, false)})), "");
}

}  // namespace
}  // namespace hallmark
