// SPDX-License-Identifier: Apache-2.0
// How the program speaks when it refuses: one line on stderr, an error object with --json, and an
// exit code. 0 conforming, 1 non-conforming, 2 usage, 3 could not decide; nothing else is returned.
#ifndef HALLMARK_TOOLS_HALLMARK_REPORT_H_
#define HALLMARK_TOOLS_HALLMARK_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/error_json.h"
#include "engine/base/result.h"

namespace hallmark {

inline constexpr int kExitOk = 0;
inline constexpr int kExitNonConforming = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUndecided = 3;

// A flag at fault is usage; what the system or a device denied, and faults of our own, leave the
// question open; every other code is a verdict on the input.
int ExitCodeOf(const Error& error);

// {"error": {"code", "message", "where"}}; `where` holds what is known.
nlohmann::json ErrorJson(const Error& error);

// Prints "hallmark: code: sentence (where)" to stderr and, with `json`, the object to stdout.
// Returns the exit code.
int ReportError(const Error& error, bool json);
// The same for a command line that could not be read: code "usage".
int ReportUsage(const std::string& sentence, bool json);

// Prints "hallmark: warning: sentence (where)" to stderr: the answer stands, something was amiss.
void ReportWarning(const std::string& sentence, const Locator& where);

// Canonical JSON to stdout; kExitUndecided if it cannot be written.
int PrintJson(const nlohmann::json& value);
int PrintText(std::string_view text);

// A line on stderr that the next one replaces; only where stderr is a terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  void Show(const std::string& line);
  void Clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_REPORT_H_
