// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/report_html.h"

#include <fmt/format.h>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "conformance/validate/report_charts.h"
#include "conformance/validate/report_style.h"
#include "conformance/validate/report_text.h"

namespace hallmark {
namespace {

struct SeverityWords {
  const char* severity;
  const char* heading;
  const char* meaning;
};
constexpr std::array kSeverities = {
    SeverityWords{"error", "Errors", "The checkpoint does not conform until these are mended."},
    SeverityWords{"warning", "Warnings", "The checkpoint runs, and its users may be surprised."},
    SeverityWords{"note", "Notes", "Worth knowing; nothing is wrong."}};

const std::string& TextOf(const Json& json, const char* key) {
  return json.at(key).get_ref<const std::string&>();
}

std::string Counted(const Json& count, const std::string& noun) {
  return count.dump() + " " + noun + (count == 1 ? "" : "s");
}

std::string WordOf(const std::string& verdict) {
  return verdict == "accepted" ? "Accepted" : verdict == "rejected" ? "Rejected" : "Undecided";
}

std::string VerdictSentence(const Json& validation) {
  const std::string& verdict = TextOf(validation, "verdict");
  if (verdict == "accepted") return "No step that ran found an error in this checkpoint.";
  if (verdict == "rejected") return "This checkpoint does not conform: an error was found.";
  return "Whether this checkpoint conforms could not be seen. That is not an acceptance.";
}

std::string Code(std::string_view css, const std::string& pointer, const Json& value) {
  return fmt::format("<code class=\"{}\" data-fact=\"{}\">{}</code>", css, pointer,
                     HtmlOfValue(value));
}

std::string VerdictHtml(const Json& validation) {
  const std::string& verdict = TextOf(validation, "verdict");
  const Json& counts = validation.at("counts");
  std::string html = fmt::format(
      "<header class=\"verdict {}\">\n<h1>{}</h1>\n<p>{}</p>\n<p>{}, {}, {}</p>\n<p>{}{}</p>\n",
      EscapeHtml(verdict), WordOf(verdict), VerdictSentence(validation),
      Counted(counts.at("errors"), "error"), Counted(counts.at("warnings"), "warning"),
      Counted(counts.at("notes"), "note"), Code("", "/directory", validation.at("directory")),
      validation.contains("drafter")
          ? ", with the drafter " + Code("", "/drafter", validation.at("drafter"))
          : "");
  html += "<ul class=\"steps\">\n";
  for (size_t i = 0; i < validation.at("steps").size(); ++i) {
    const Json& step = validation.at("steps")[i];
    html += fmt::format("<li class=\"{0}\">{1} <b data-fact=\"/steps/{2}/verdict\">{0}</b></li>\n",
                        EscapeHtml(TextOf(step, "verdict")), EscapeHtml(TextOf(step, "step")), i);
  }
  for (const Json& step : validation.at("not_run")) {
    html += "<li class=\"unrun\">" + HtmlOfValue(step) + " <b>not run</b></li>\n";
  }
  html += "</ul>\n";
  if (!validation.at("not_run").empty()) {
    html += "<p class=\"soft\">A step is not run when it rests on one that found errors.</p>\n";
  }
  return html + "</header>\n";
}

std::string PlaceHtml(const Json& where, const std::string& pointer) {
  std::string html;
  for (const char* key : {"file", "tensor", "pointer", "byte", "flag", "launcher"}) {
    if (!where.contains(key)) continue;
    html += fmt::format("<span>{} {}</span>", key, Code("", pointer + "/" + key, where.at(key)));
  }
  return html.empty() ? "" : "<p class=\"place\">" + html + "</p>\n";
}

std::string FindingHtml(const Json& finding, const std::string& pointer) {
  const std::string severity = EscapeHtml(TextOf(finding, "severity"));
  std::string html = fmt::format(
      "<article class=\"{0}\">\n<header><span class=\"severity\" data-fact=\"{1}/severity\">{0}"
      "</span> {2} <span class=\"clause\">clause {3}</span></header>\n"
      "<p data-fact=\"{1}/message\">{4}</p>\n",
      severity, pointer, Code("check", pointer + "/check", finding.at("check")),
      Code("", pointer + "/clause", finding.at("clause")), HtmlOfValue(finding.at("message")));
  html += PlaceHtml(finding.at("where"), pointer + "/where");
  if (!TextOf(finding, "action").empty()) {
    html += fmt::format("<p><b>What to do:</b> <span data-fact=\"{}/action\">{}</span></p>\n",
                        pointer, HtmlOfValue(finding.at("action")));
  }
  return html + "</article>\n";
}

std::string FindingsHtml(const Json& validation) {
  std::string html;
  for (const SeverityWords& words : kSeverities) {
    std::string list;
    for (size_t i = 0; i < validation.at("steps").size(); ++i) {
      const Json& findings = validation.at("steps")[i].at("findings");
      for (size_t j = 0; j < findings.size(); ++j) {
        if (TextOf(findings[j], "severity") != words.severity) continue;
        list += FindingHtml(findings[j], fmt::format("/steps/{}/findings/{}", i, j));
      }
    }
    if (list.empty()) continue;
    html += fmt::format("<section>\n<h2>{}</h2>\n<p class=\"soft\">{}</p>\n{}</section>\n",
                        words.heading, words.meaning, list);
  }
  return html.empty() ? "<h2>Findings</h2>\n<p>Nothing was found amiss.</p>\n" : html;
}

std::string Figure(const std::string& chart, const std::string& caption, const Json& rows,
                   const std::string& pointer) {
  if (chart.empty()) return "";
  return fmt::format(
      "<figure>\n<figcaption>{}</figcaption>\n{}<details><summary>The values as a table</summary>\n"
      "{}</details>\n</figure>\n",
      caption, chart, HtmlOfTable(rows, pointer));
}

std::string FiguresHtml(const Json& facts, const std::string& pointer) {
  std::string html;
  if (facts.contains("/model/layer_bits"_json_pointer)) {
    const Json& rows = facts.at("/model/layer_bits"_json_pointer);
    html += Figure(BitsChart(rows), "Bits of a weight, by layer (mean over its linears)", rows,
                   pointer + "/model/layer_bits");
  }
  if (facts.contains("/tensors/linears"_json_pointer)) {
    const Json& rows = facts.at("/tensors/linears"_json_pointer);
    html +=
        Figure(ErrorChart(rows),
               "Error against the source model (NMSE), one mark a linear; shaded: the band that "
               "the layer's widths are expected to reach; crosses lie outside their own band",
               rows, pointer + "/tensors/linears");
  }
  return html;
}

std::string MeasuredHtml(const Json& validation) {
  std::string html;
  for (size_t i = 0; i < validation.at("steps").size(); ++i) {
    const Json& step = validation.at("steps")[i];
    const Json& facts = step.at("facts");
    const Json& compared = step.at("compared");
    if (facts.empty() && compared.empty()) continue;
    const std::string counts =
        compared.empty() ? "" : HtmlOfFacts({{"compared", compared}}, fmt::format("/steps/{}", i));
    const std::string pointer = fmt::format("/steps/{}/facts", i);
    Json rest = facts;  // less what stands below a chart
    const std::string figures = FiguresHtml(facts, pointer);
    if (rest.contains("model")) rest["model"].erase("layer_bits");
    if (figures.find("error-chart") != std::string::npos) rest["tensors"].erase("linears");
    html +=
        fmt::format("<section class=\"step\">\n<h3>{}</h3>\n{}{}{}</section>\n",
                    EscapeHtml(TextOf(step, "step")), counts, figures, HtmlOfFacts(rest, pointer));
  }
  return html.empty() ? "" : "<h2>What was measured</h2>\n" + html;
}

std::string FilesHtml(const Json& validation) {
  const Json& files = validation.at("files");
  if (files.empty()) return "";
  const std::string& why = TextOf(validation.at("digests"), "why");
  return "<h2>Files</h2>\n<section class=\"step\">\n" +
         (why.empty()
              ? ""
              : "<p class=\"soft\">Not each has its SHA-256: " + EscapeHtml(why) + ".</p>\n") +
         HtmlOfTable(files, "/files") + "</section>\n";
}

}  // namespace

std::string ValidationHtml(const Json& validation) {
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'\">\n<title>{}: {}</title>\n<style>{}</style>\n</head>\n"
             "<body>\n<main>\n<p class=\"brand\">Hallmark: validation of a checkpoint</p>\n",
             WordOf(TextOf(validation, "verdict")), EscapeHtml(TextOf(validation, "directory")),
             kReportStyle) +
         VerdictHtml(validation) + FindingsHtml(validation) + MeasuredHtml(validation) +
         FilesHtml(validation) +
         fmt::format(
             "<footer>\n<p>Written by hallmark <span data-fact=\"/version\">{}</span>. A step that "
             "is not named above was not asked for. <code>hallmark validate --json</code> states "
             "the same for programs. A report says what was seen on one machine; what others can "
             "check is a receipt.</p>\n</footer>\n</main>\n</body>\n</html>\n",
             EscapeHtml(TextOf(validation, "version")));
}

}  // namespace hallmark
