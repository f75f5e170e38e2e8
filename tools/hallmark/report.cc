// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/base/printable.h"

namespace hallmark {
namespace {

std::string Line(const std::string& text) { return Printable(text, 2000); }

int PrintToStderr(std::string_view code, const std::string& sentence, const std::string& place) {
  std::fprintf(stderr, "hallmark: %.*s: %s%s\n", static_cast<int>(code.size()), code.data(),
               Line(sentence).c_str(), place.empty() ? "" : (" (" + Line(place) + ")").c_str());
  return std::fflush(stderr);
}

}  // namespace

int ExitCodeOf(const Error& error) {
  if (!error.where.flag.empty()) return kExitUsage;
  switch (error.code) {
    case Code::kIo:
    case Code::kResource:
    case Code::kDevice:
    case Code::kInternal:
      return kExitUndecided;
    default:
      return kExitNonConforming;
  }
}

Json ErrorJson(const Error& error) {
  return {{"error",
           {{"code", CodeName(error.code)},
            {"message", Utf8(error.message)},
            {"where", LocatorJson(error.where)}}}};
}

int ReportError(const Error& error, bool json) {
  PrintToStderr(CodeName(error.code), error.message, error.where.ToString());
  if (json) PrintJson(ErrorJson(error));
  return ExitCodeOf(error);
}

int ReportUsage(const std::string& sentence, bool json) {
  PrintToStderr("usage", sentence, "");
  if (json) {
    PrintJson(
        {{"error", {{"code", "usage"}, {"message", Utf8(sentence)}, {"where", Json::object()}}}});
  }
  return kExitUsage;
}

void ReportWarning(const std::string& sentence, const Locator& where) {
  PrintToStderr("warning", sentence, where.ToString());
}

int PrintText(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return kExitOk;
  PrintToStderr(CodeName(Code::kIo),
                std::string("the output could not be written: ") + std::strerror(errno), "stdout");
  return kExitUndecided;
}

int PrintJson(const Json& value) { return PrintText(CanonicalJson(value)); }

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Clear(); }

void Progress::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::Show(const std::string& line) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%s", Line(line).c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace hallmark
