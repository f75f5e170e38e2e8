// SPDX-License-Identifier: Apache-2.0
// hallmark keygen and hallmark sign: an Ed25519 key, and a receipt in an envelope signed with it.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/base/mapped_file.h"
#include "receipts/emit/atomic_file.h"
#include "receipts/verify/compare.h"
#include "receipts/verify/dsse.h"
#include "receipts/verify/key_file.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr std::string_view kReceiptSuffix = ".intoto.jsonl";
constexpr std::string_view kEnvelopeSuffix = ".dsse.json";

struct SignFlags {
  std::string receipt;
  std::string key;
  std::optional<std::string> out;
};

Result<int> Sign(const SignFlags& flags) {
  if (!flags.receipt.ends_with(kReceiptSuffix)) {
    return Fail(Code::kOutOfRange, "expected a receipt, NAME.intoto.jsonl",
                {.file = flags.receipt, .flag = "RECEIPT"});
  }
  std::string out = flags.receipt.substr(0, flags.receipt.size() - kReceiptSuffix.size());
  out += kEnvelopeSuffix;
  if (flags.out) out = *flags.out;
  if (!out.ends_with(kEnvelopeSuffix)) {
    return Fail(Code::kOutOfRange, "expected NAME.dsse.json, else nobody takes it for an envelope",
                {.file = out, .flag = "--out"});
  }
  TRY(CheckOutputFile(out));
  TRY(CheckOutputApart(out, std::vector<std::string>{flags.receipt, flags.key}));
  const verify::SecretKey key = TRY(NameFlag(verify::ReadSecretKey(flags.key), "--key"));
  const MappedFile file = TRY(MappedFile::Open(flags.receipt));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  // A name is put under a receipt only, not under whatever a file holds.
  TRY(verify::ReadCore(verify::BuiltInKnowledge(), flags.receipt, bytes));
  TRY(WriteFileAtomically(out, TRY(verify::SignEnvelope(bytes, key))));
  return PrintText("envelope     " + out + "\nkey id       " +
                   verify::KeyId(TRY(verify::PublicKeyOf(key))) + "\n");
}

Result<int> MakeKey(const std::string& prefix) {
  // ".key" alone would be a hidden file that nobody looks for.
  if (std::filesystem::path(prefix).filename().empty()) {
    return Fail(Code::kOutOfRange, "found \"" + prefix + "\", expected a name for the key's files",
                {.flag = "--out"});
  }
  const verify::KeyPaths paths = TRY(verify::WriteNewKey(prefix));
  const verify::PublicKey key = TRY(verify::ReadPublicKey(paths.open));
  return PrintText("secret key   " + paths.secret + "\npublic key   " + paths.open +
                   "\nkey id       " + verify::KeyId(key) + "\n");
}

}  // namespace

void AddSignCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<SignFlags>();
  CLI::App* command =
      program.add_subcommand("sign", "Put a receipt into an envelope signed with your key");
  command->add_option("RECEIPT", flags->receipt, "The receipt, NAME.intoto.jsonl")
      ->required()
      ->type_name("");
  command->add_option("--key", flags->key, "The secret key, PREFIX.key")
      ->required()
      ->type_name("FILE");
  AddTextFlag(*command, "--out", flags->out, "The envelope to write [NAME.dsse.json]")
      ->type_name("FILE");
  command->footer(
      "Writes a DSSE envelope with one Ed25519 signature. It says who vouches for a receipt, and\n"
      "makes none pass: 'hallmark verify ENVELOPE --public-key FILE' judges both.\n\n"
      "Examples:\n"
      "  hallmark keygen --out mine\n"
      "  hallmark sign RECEIPT --key mine.key");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Sign(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

void AddKeygenCommand(CLI::App& program, CommandRun& run) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("keygen", "Make a key to sign receipts with");
  command->add_option("--out", *prefix, "Writes PREFIX.key, for you alone, and PREFIX.pub")
      ->required()
      ->type_name("PREFIX");
  command->footer(
      "An Ed25519 key. No file that is there is written over.\n\n"
      "Example:\n"
      "  hallmark keygen --out mine");
  command->callback([prefix, &run] {
    run = [prefix] {
      const Result<int> code = MakeKey(*prefix);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

}  // namespace hallmark
