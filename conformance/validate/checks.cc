// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/checks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;
constexpr Severity kNote = Severity::kNote;

constexpr std::array kChecks = {
    // The folder and its files.
    CheckInfo{"file-changed", kError,
              "Wait until nothing writes to the folder any more, then validate again."},
    CheckInfo{"unreadable-file", kError,
              "Mend the link or the right to read, then validate again."},
    CheckInfo{"not-a-folder", kError, "Name the folder that holds config.json and the shards."},
    CheckInfo{"unfinished-download", kError,
              "Let the download end, or fetch the file again and delete what was left over."},
    CheckInfo{"pointer-file", kError,
              "Fetch the file itself (git lfs pull, git annex get): this one only names it."},
    CheckInfo{"not-the-file", kError,
              "Fetch the file again: a server's answer was saved in its place."},
    CheckInfo{"empty-file", kError, "Fetch or write the file again."},
    CheckInfo{"shard-missing", kError, "Add the shard, or write an index that does not need it."},
    CheckInfo{"shard-truncated", kError, "Fetch or write the shard again: its end is missing."},
    CheckInfo{"shard-header", kError, "Write the shard again with a correct safetensors writer."},
    CheckInfo{"config-missing", kError, "Add config.json: without it no tensor has a meaning."},
    CheckInfo{"weights-missing", kError,
              "Add model.safetensors, or shards with model.safetensors.index.json."},
    CheckInfo{"index-missing", kError,
              "Add model.safetensors.index.json: shards are read through it."},
    CheckInfo{"json-broken", kError, "Mend the document: it is not the JSON it should be."},
    // The index.
    CheckInfo{"index-entry", kError, "Write the index anew from the shards."},
    CheckInfo{"stray-shard", kError, "Delete the file, or list its tensors in the index."},
    CheckInfo{"duplicate-tensor", kError, "Keep the tensor in one shard alone."},
    CheckInfo{"index-wrong-shard", kError, "Write the index anew from the shards."},
    CheckInfo{"index-stale", kError,
              "Write the index anew from the shards, or add the tensors that it names."},
    CheckInfo{"index-incomplete", kError, "Write the index anew from the shards."},
    CheckInfo{"index-total-size", kError, "Write the index anew from the shards."},
    // Configs and tensors.
    CheckInfo{"config-value", kError, "Mend the value in the config."},
    CheckInfo{"quantization-value", kError, "Mend the value in the quantization config."},
    CheckInfo{"quantization-disagrees", kError,
              "Let both places state one value: the one that the tensors have."},
    CheckInfo{"two-models", kError, "Keep the text model under one prefix alone."},
    CheckInfo{"missing-tensor", kError, "Add the tensor, or mend what the config says."},
    CheckInfo{"tensor-form", kError, "Write the tensor again, or mend what the config says."},
    CheckInfo{"unknown-tensor", kError, "Remove the tensor: nobody knows what to compute with it."},
    CheckInfo{"exl3-unstated", kError,
              "Let the config's quantization_config and the tensors say the same."},
    CheckInfo{"storage-disagrees", kError,
              "Write quantization_config.json again, together with the shards."},
    CheckInfo{"drafter-mismatch", kError, "Use a drafter that was made for this very model."},
    CheckInfo{"generation-value", kError, "Mend the value in generation_config.json."},
    CheckInfo{"tokenizer-broken", kError, "Use the tokenizer.json of the source model."},
    CheckInfo{"tokenizer-vocabulary", kError,
              "Use the tokenizer.json of the source model, whose ids the embedding has."},
    CheckInfo{"stop-id-without-token", kError, "State stop ids that the tokenizer can produce."},
    // What runs, and may surprise.
    CheckInfo{"tokenizer-missing", kWarning,
              "Add tokenizer.json: without it only ids can be given."},
    CheckInfo{"no-stop-id", kWarning,
              "State eos_token_id in generation_config.json: replies end only at their limit."},
    CheckInfo{"chat-end-not-a-stop", kWarning,
              "Add the id that ends a turn to eos_token_id in generation_config.json."},
    CheckInfo{"drafter-mask-is-a-stop", kWarning,
              "State the mask that the drafter was trained with: an id that ends texts is none."},
    CheckInfo{"generation-setting-ignored", kWarning,
              "Leave the setting out if the model does not need it; else say in README.md that "
              "replies differ where it is not applied."},
    CheckInfo{"stop-ids-differ", kWarning, "State the same stop ids in both files."},
    CheckInfo{"special-token-unknown", kWarning,
              "Let tokenizer_config.json and tokenizer.json name the same tokens."},
    CheckInfo{"chat-template-broken", kWarning, "Use the chat template of the source model."},
    CheckInfo{"chat-template-missing", kWarning,
              "Add chat_template.jinja, or chat_template in tokenizer_config.json."},
    CheckInfo{"chat-template-twice", kWarning,
              "Keep one chat template, or let both files hold the same."},
    CheckInfo{"licence-missing", kWarning,
              "Add the source model's licence: nobody may use what has none."},
    CheckInfo{"stated-bits", kWarning, "State the bits that the tensors have."},
    CheckInfo{"leftover-download", kWarning, "Delete the file if no download is under way."},
    // Worth knowing.
    CheckInfo{"stated-codebook", kNote, "Nothing need be done: the markers decide."},
    CheckInfo{
        "storage-missing", kNote,
        "Add the converter's quantization_config.json, so that shapes can be held against it."},
    CheckInfo{"generation-config-missing", kNote,
              "Add generation_config.json if the source model has one."},
    CheckInfo{"licence-file-missing", kNote, "Add the text of the licence that README.md names."},
    CheckInfo{"tied-with-head", kNote, "Nothing need be done: the head of its own is used."},
    CheckInfo{"unused-part", kNote, "Nothing need be done: this part is never loaded."},
    CheckInfo{"unused-file", kNote, "Nothing need be done: this file is never read."},
};

size_t RankOf(std::string_view check) {
  const auto* found = std::find_if(kChecks.begin(), kChecks.end(),
                                   [check](const CheckInfo& info) { return info.id == check; });
  CHECK(found != kChecks.end());
  return static_cast<size_t>(found - kChecks.begin());
}

}  // namespace

std::span<const CheckInfo> StructureChecks() { return kChecks; }

std::string_view ClauseOf(Severity severity) {
  return severity == Severity::kError ? "format-reject" : "format-accept";
}

void FindingList::Add(std::string_view check, Error error) {
  const CheckInfo& info = kChecks[RankOf(check)];
  if (info.severity == kError) ++errors_;
  findings_.push_back({.severity = info.severity,
                       .clause = std::string(ClauseOf(info.severity)),
                       .check = std::string(check),
                       .error = std::move(error),
                       .action = std::string(info.action)});
}

size_t FindingList::CountOf(std::string_view check) const {
  return static_cast<size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [check](const Finding& finding) { return finding.check == check; }));
}

std::vector<Finding> FindingList::Sorted() const {
  std::vector<Finding> sorted;
  for (const CheckInfo& info : kChecks) {
    size_t count = 0;
    for (const Finding& finding : findings_) {
      if (finding.check != info.id) continue;
      if (++count <= kMost) sorted.push_back(finding);
    }
    if (count > kMost) {
      Finding& last = sorted.back();
      last.error.message += "; and " + std::to_string(count - kMost) + " more findings like this";
    }
  }
  return sorted;
}

}  // namespace hallmark
