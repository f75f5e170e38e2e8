// SPDX-License-Identifier: Apache-2.0
// The commands of the program. Each Add function declares one command's flags and, when the command
// line names it, leaves in `run` what to do. The parser's types stay in the .cc files.
#ifndef HALLMARK_TOOLS_HALLMARK_COMMAND_H_
#define HALLMARK_TOOLS_HALLMARK_COMMAND_H_

#include <functional>
#include <optional>
#include <string>

#include "tools/hallmark/flags.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hallmark {

// Runs the chosen command; returns the exit code.
using CommandRun = std::function<int()>;

void AddInspectCommand(CLI::App& program, CommandRun& run);
void AddPlanCommand(CLI::App& program, CommandRun& run);
void AddSynthCommand(CLI::App& program, CommandRun& run);
void AddRunCommand(CLI::App& program, CommandRun& run);
void AddLogitsCommand(CLI::App& program, CommandRun& run);
void AddDraftCommand(CLI::App& program, CommandRun& run);
void AddReceiptCommand(CLI::App& program, CommandRun& run);
void AddVerifyCommand(CLI::App& program, CommandRun& run);
void AddValidateCommand(CLI::App& program, CommandRun& run);
void AddDiffCommand(CLI::App& program, CommandRun& run);
void AddSignCommand(CLI::App& program, CommandRun& run);
void AddKeygenCommand(CLI::App& program, CommandRun& run);
void AddBenchCommand(CLI::App& program, CommandRun& run);

// --kv, --device, --tier and --threads of a command; `flags` outlives the parsing.
void AddEngineFlags(CLI::App& command, EngineFlags& flags);
// --drafter, --drafter-weights and --draft-vocab; `flags` outlives the parsing.
void AddDraftFlags(CLI::App& command, DraftFlags& flags);
// A flag that may be absent; given as "", it is there and empty. `value` outlives the parsing.
CLI::Option* AddTextFlag(CLI::App& command, const std::string& name,
                         std::optional<std::string>& value, const std::string& description);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_COMMAND_H_
