// SPDX-License-Identifier: Apache-2.0
// hallmark verify: judges receipts offline, from their bytes and what the program carries.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "receipts/emit/atomic_file.h"
#include "receipts/verify/calendar.h"
#include "receipts/verify/document.h"
#include "receipts/verify/key_file.h"
#include "receipts/verify/verify.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct VerifyFlags {
  std::vector<std::string> receipts;
  // Absent: not given. An empty text is given, and names nothing.
  std::optional<std::string> policy, waivers, public_key, checkpoint, drafter, out;
  bool json = false;
};

// The whole of a small file. What a flag names is the user's word, so its fault is one of usage.
Result<std::string> ReadFlagFile(const std::string& path, const char* flag) {
  const auto file = MappedFile::Open(path);
  if (!file.has_value()) {
    Error error = file.error();
    error.where.flag = flag;
    return Fail(std::move(error));
  }
  if (file->bytes().size() > verify::kMaxReceiptBytes) {
    return Fail(Code::kOutOfRange,
                "the file has " + std::to_string(file->bytes().size()) + " bytes, at most " +
                    std::to_string(verify::kMaxReceiptBytes) + " are read",
                {.file = path, .flag = flag});
  }
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

Result<verify::Policy> ReadPolicy(const std::string& given) {
  const verify::Knowledge& knowledge = verify::BuiltInKnowledge();
  if (const verify::Policy* built_in = knowledge.PolicyOf(given)) return *built_in;
  if (!HasEntry(given)) {
    std::string names;
    for (const auto& [name, policy] : knowledge.policies) names += name + ", ";
    return Fail(Code::kNotFound, "found \"" + given + "\", expected " + names + "or a file",
                {.flag = "--policy"});
  }
  const std::string text = TRY(ReadFlagFile(given, "--policy"));
  verify::Policy policy = TRY(NameFlag(verify::ParsePolicy(knowledge, text, given), "--policy"));
  const verify::Policy* known = knowledge.PolicyOf(policy.name);
  if (known == nullptr || known->sha256 == policy.sha256) return policy;
  // A verdict names its policy, and must not speak of one that demands something else.
  return Fail(Code::kMismatch,
              "the name " + policy.name + " is a built-in policy's of another text",
              {.file = given, .pointer = "/name", .flag = "--policy"});
}

// A glob over a folder of receipts hands over their summaries too; one whose receipt is not given
// is judged like any other file, and denied.
bool IsSummaryOf(const std::string& path, const std::vector<std::string>& given) {
  constexpr std::string_view kSuffix = ".txt";
  if (!path.ends_with(kSuffix)) return false;
  const std::string stem = path.substr(0, path.size() - kSuffix.size());
  return std::find(given.begin(), given.end(), stem + ".intoto.jsonl") != given.end();
}

// The files named, a folder standing for the receipts in it. A folder without one is a wrong
// argument: nothing would be judged.
Result<std::vector<std::string>> ExpandFolders(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  for (const std::string& path : given) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      const std::string name = entry.path().string();
      if (name.ends_with(".intoto.jsonl")) inside.push_back(name);
    }
    if (inside.empty()) {
      return Fail(Code::kNotFound, "the folder holds no receipt, expected *.intoto.jsonl in it",
                  {.file = path, .flag = "RECEIPT"});
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

verify::ReceiptVerdict Judge(const std::string& path, const verify::VerifyOptions& options) {
  const auto file = MappedFile::Open(path);
  if (!file.has_value()) return verify::Unreadable(Utf8(path), file.error().ToString());
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  const std::string name = std::filesystem::path(path).filename().string();
  auto verdict = verify::VerifyReceipt(verify::BuiltInKnowledge(), name, bytes, options);
  const Status intact = file->Intact();
  if (!intact.has_value()) return verify::Unreadable(Utf8(path), intact.error().ToString());
  if (!verdict.has_value()) return verify::Unreadable(Utf8(path), verdict.error().ToString());
  verdict->file = Utf8(path);
  return *std::move(verdict);
}

Result<int> Run(const VerifyFlags& flags) {
  verify::VerifyOptions options;
  verify::Policy policy;
  if (flags.policy) {
    policy = TRY(ReadPolicy(*flags.policy));
    options.policy = &policy;
  }
  if (flags.waivers) {
    const std::string text = TRY(ReadFlagFile(*flags.waivers, "--waivers"));
    options.waivers = TRY(NameFlag(
        verify::ParseWaivers(verify::BuiltInKnowledge(), text, *flags.waivers, verify::Today()),
        "--waivers"));
  }
  if (flags.public_key) {
    options.public_key = TRY(NameFlag(verify::ReadPublicKey(*flags.public_key), "--public-key"));
  }
  if (flags.checkpoint) {
    TRY(CheckDirectory(*flags.checkpoint, "--checkpoint"));
    options.checkpoint_folder = *flags.checkpoint;
  }
  if (flags.drafter) {
    TRY(CheckDirectory(*flags.drafter, "--drafter"));
    options.drafter_folder = *flags.drafter;
  }
  if (flags.out) {
    TRY(CheckOutputFile(*flags.out));
    std::vector<std::string> inputs = flags.receipts;
    for (const auto& input :
         {flags.policy, flags.waivers, flags.public_key, flags.checkpoint, flags.drafter}) {
      if (input) inputs.push_back(*input);
    }
    TRY(CheckOutputApart(*flags.out, inputs));
  }
  std::vector<verify::ReceiptVerdict> verdicts;
  const std::vector<std::string> receipts = TRY(ExpandFolders(flags.receipts));
  for (const std::string& path : receipts) {
    if (!IsSummaryOf(path, receipts)) verdicts.push_back(Judge(path, options));
  }
  const Json document = verify::VerdictJson(verdicts);
  if (flags.out) TRY(WriteFileAtomically(*flags.out, CanonicalJson(document)));
  std::string text;
  for (const verify::ReceiptVerdict& verdict : verdicts) text += verify::VerdictText(verdict);
  const int printed = flags.json ? PrintJson(document) : PrintText(text);
  const int code = verify::ExitCodeOfAll(verdicts);
  return code != kExitOk ? code : printed;
}

}  // namespace

void AddVerifyCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = program.add_subcommand(
      "verify", "Judge receipts offline: what they claim, against themselves and a policy");
  command
      ->add_option("RECEIPT", flags->receipts,
                   "Files *.intoto.jsonl or *.dsse.json, or folders of the first")
      ->required()
      ->type_name("");
  AddTextFlag(*command, "--policy", flags->policy,
              "L0 to L3, or a policy's file [that of the level the receipt claims]")
      ->type_name("P");
  AddTextFlag(*command, "--waivers", flags->waivers, "Failed cases to waive, each until a date")
      ->type_name("FILE");
  AddTextFlag(*command, "--public-key", flags->public_key,
              "Demand an envelope that this key has signed")
      ->type_name("FILE");
  AddTextFlag(*command, "--checkpoint", flags->checkpoint,
              "Also hold the files of this checkpoint against the receipt")
      ->type_name("DIR");
  AddTextFlag(*command, "--drafter", flags->drafter, "The same for a drafter")->type_name("DIR");
  AddTextFlag(*command, "--out", flags->out, "Write the verdict document here too")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "The verdict document instead of text");
  command->footer(
      "Needs no network, no GPU and no file but the receipt. Summaries (.txt) beside receipts "
      "that\n"
      "are given are passed over. Exit code 0: every receipt passed; 1: one is denied; 3: one "
      "could\n"
      "not be decided (unreadable, waived, or a case that did not end).\n\n"
      "Examples:\n"
      "  hallmark verify receipts/published/cpu/*\n"
      "  hallmark verify RECEIPT --policy L1 --json\n"
      "  hallmark verify RECEIPT --checkpoint golden/models/scribe-11m-exl3");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
