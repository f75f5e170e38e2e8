// SPDX-License-Identifier: Apache-2.0
// hallmark draft: what a drafter proposes after given ids, and the rows it proposes it from, as a
// safetensors file. For comparing drafters; generating with one is `hallmark run --drafter`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>

#include "engine/draft/draft_pass.h"
#include "engine/model/forward.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"
#include "tools/hallmark/safetensors_out.h"

namespace hallmark {
namespace {

struct ProposalFlags {
  std::string directory;
  std::string ids;
  std::string anchor;
  std::string out;
  DraftFlags draft;
  EngineFlags engine;
};

// Feeds `ids` to the target, hands its taps to the drafter, and proposes after `anchor`.
Result<DraftProposal> Propose(const Session& session, std::span<const int32_t> ids,
                              int32_t anchor) {
  const Model& model = session.model();
  const Drafter& drafter = *session.drafter();
  ForwardPass target = TRY(ForwardPass::Create(model, ForwardPass::kMaxRows, drafter.taps()));
  Sequence sequence = TRY(Sequence::Create(*model.backend, model.config, session.options().kv));
  DraftPass pass = TRY(DraftPass::Create(drafter));
  DraftContext context = TRY(DraftContext::Create(drafter));
  while (!ids.empty()) {
    const auto piece = ids.first(std::min(ids.size(), static_cast<size_t>(target.max_rows())));
    TRY(target.Run(sequence, piece, {.logits = LogitRows::kNone}));
    TRY(pass.Append(context, target.taps()));
    ids = ids.subspan(piece.size());
  }
  const DraftRequest request{.context = &context, .anchor = anchor};
  std::vector<DraftProposal> proposals = TRY(pass.Propose({&request, 1}, /*keep_rows=*/true));
  return std::move(proposals[0]);
}

Status WriteProposal(const ProposalFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  TRY(CheckOutputFile(flags.out));
  const std::vector<int32_t> ids = TRY(ParseIds(flags.ids));
  const auto anchor = static_cast<int32_t>(
      TRY(ParseInteger(flags.anchor, "--anchor", 0, std::numeric_limits<int32_t>::max())));
  SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  TRY(ParseDraftFlags(flags.draft, options));
  options.streams = 1;
  options.kept_bytes = 0;
  Progress progress;
  progress.Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(OpenSession(flags.directory, options));
  TRY(CheckOutputApart(flags.out, *session));
  TRY(CheckIds(ids, *session));
  TRY(CheckIds({anchor}, *session, {.flag = "--anchor"}));
  progress.Show("running " + std::to_string(ids.size()) + " ids");
  const DraftProposal proposal = TRY(Propose(*session, ids, anchor));
  const int64_t rows = static_cast<int64_t>(proposal.ids.size());
  const int64_t hidden = static_cast<int64_t>(proposal.rows.size()) / rows;
  return WriteSafetensors(
      flags.out, std::vector<TensorOut>{{.name = "rows",
                                         .type = "F32",
                                         .shape = {rows, hidden},
                                         .bytes = std::as_bytes(std::span(proposal.rows))},
                                        {.name = "draft",
                                         .type = "I32",
                                         .shape = {rows},
                                         .bytes = std::as_bytes(std::span(proposal.ids))}});
}

}  // namespace

void AddDraftCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<ProposalFlags>();
  CLI::App* command = program.add_subcommand(
      "draft", "Write what a drafter proposes after given token ids to a file");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  command->add_option("--ids", flags->ids, "Token ids the checkpoint has run, separated by commas")
      ->required()
      ->type_name("N,N,...");
  command->add_option("--anchor", flags->anchor, "The id that follows them, drawn and not run yet")
      ->required()
      ->type_name("N");
  command
      ->add_option("--out", flags->out,
                   "The file to write: safetensors, \"rows\" F32 [drafts, hidden] after the final "
                   "norm and \"draft\" I32 [drafts]")
      ->required()
      ->type_name("FILE");
  AddDraftFlags(*command, flags->draft);
  command->get_option("--drafter")->required();
  AddEngineFlags(*command, flags->engine);
  command->footer(
      "Draft i is meant for the place i + 1 after the anchor; the choice is greedy. The file "
      "appears "
      "whole\nor not at all.\n\n"
      "Examples:\n"
      "  hallmark draft golden/models/scribe-11m-exl3 --drafter golden/models/scribe-11m-dflash2 "
      "\\\n"
      "    --ids 57,318,262 --anchor 1033 --out draft.safetensors\n"
      "  hallmark draft DIR --drafter D --drafter-weights 4bit --ids 1,2,3 --anchor 4 --out "
      "4bit.st");
  command->callback([flags, &run] {
    run = [flags] {
      const Status status = WriteProposal(*flags);
      return status.has_value() ? kExitOk : ReportError(status.error(), false);
    };
  });
}

}  // namespace hallmark
