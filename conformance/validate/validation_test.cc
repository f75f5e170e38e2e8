// SPDX-License-Identifier: Apache-2.0
// The verdict over all findings, and how it is told.
#include "conformance/validate/validation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/validate/broken_checkpoint.h"
#include "conformance/validate/validation_json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

Finding Told(Severity severity, Code code, std::string check = "some-check") {
  return {.severity = severity,
          .clause = "format-reject",
          .check = std::move(check),
          .error = {.code = code, .message = "a sentence", .where = {.file = "f", .byte = 7}},
          .action = "Mend it."};
}

Validation With(std::vector<Finding> findings) {
  Validation validation{.options = {.folder = "dir"}};
  validation.steps.push_back(
      {.step = "structure", .findings = std::move(findings), .compared = {{"files", 3}}});
  return validation;
}

TEST(Validation, AcceptsWithWarningsAndNotes) {
  EXPECT_EQ(With({}).judgement(), Judgement::kAccepted);
  EXPECT_EQ(With({Told(Severity::kWarning, Code::kMismatch), Told(Severity::kNote, Code::kIo)})
                .judgement(),
            Judgement::kAccepted);
}

TEST(Validation, RejectsForOneError) {
  EXPECT_EQ(With({Told(Severity::kNote, Code::kMismatch), Told(Severity::kError, Code::kMismatch)})
                .judgement(),
            Judgement::kRejected);
}

TEST(Validation, NeverAcceptsWhatCouldNotBeDecided) {
  for (const Code code : {Code::kIo, Code::kResource, Code::kDevice, Code::kInternal}) {
    EXPECT_EQ(With({Told(Severity::kError, code)}).judgement(), Judgement::kUndecided);
  }
  EXPECT_EQ(With({Told(Severity::kError, Code::kMismatch, "step-failed")}).judgement(),
            Judgement::kUndecided);
}

TEST(Validation, AnErrorStandsBesideWhatCouldNotBeDecided) {
  EXPECT_EQ(With({Told(Severity::kError, Code::kIo), Told(Severity::kError, Code::kMismatch)})
                .judgement(),
            Judgement::kRejected);
}

TEST(Validation, AFileThatChangedLeavesEverythingOpen) {
  EXPECT_EQ(With({Told(Severity::kError, Code::kIo, "file-changed"),
                  Told(Severity::kError, Code::kMismatch)})
                .judgement(),
            Judgement::kUndecided);
}

TEST(Validation, OneStepsFindingsStandBesideAnothers) {
  Validation validation = With({Told(Severity::kWarning, Code::kMismatch)});
  validation.steps.push_back(
      {.step = "later", .findings = {Told(Severity::kError, Code::kOutOfRange)}});
  EXPECT_EQ(validation.judgement(), Judgement::kRejected);
  EXPECT_EQ(JudgementOf(validation.steps[0]), Judgement::kAccepted);
  EXPECT_EQ(validation.gravest()->error.code, Code::kOutOfRange);
  EXPECT_EQ(validation.Count(Severity::kWarning), 1u);
}

TEST(Validation, TheFirstLineNamesTheGravestAndItsPlace) {
  const std::string text = ValidationText(
      With({Told(Severity::kNote, Code::kMismatch, "a"), Told(Severity::kError, Code::kIo, "b"),
            Told(Severity::kError, Code::kMismatch, "c")}));
  EXPECT_EQ(text.substr(0, text.find('\n')), "error: b: a sentence (f, byte 7)");
  EXPECT_TRUE(text.ends_with("Rejected: dir does not conform (2 errors, 0 warnings, 1 note).\n"));
}

TEST(Validation, NothingAmissIsSaidInWords) {
  EXPECT_EQ(ValidationText(With({})),
            "nothing was found amiss\n\nstructure: accepted (3 files)\n\n"
            "Accepted: dir conforms (0 warnings, 0 notes).\n");
}

TEST(Validation, WhatATerminalWouldObeyIsTakenOut) {
  Finding finding = Told(Severity::kError, Code::kMismatch);
  finding.error.message = "\x1b[31m\n" + std::string(5000, 'x');
  const std::string text = ValidationText(With({finding}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 3000u);
}

TEST(Validation, JsonHoldsBytesThatAreNoText) {
  Finding finding = Told(Severity::kError, Code::kMismatch);
  finding.error.where.tensor = "a\xff";
  const Json json = ValidationJson(With({finding}), "1");
  EXPECT_EQ(json["verdict"], "rejected");
  EXPECT_EQ(json["counts"]["errors"], 1);
  EXPECT_NE(json.dump().find("\xef\xbf\xbd"), std::string::npos);
}

ValidationStep Step(std::string name, Result<StepReport> result) {
  return {.name = std::move(name), .run = [result](const StepProgress&) { return result; }};
}

TEST(Validation, AStepThatCannotBeCarriedOutHidesNoOther) {
  const StepReport report{.step = "a",
                          .findings = {Told(Severity::kWarning, Code::kMismatch)},
                          .compared = {{"rows", 1}}};
  const Validation validation =
      Validate({.folder = "dir"},
               {Step("b", Result<StepReport>(Fail(Code::kMalformed, "no", {.file = "f"}))),
                Step("a", report)},
               {});
  ASSERT_EQ(validation.steps.size(), 2u);
  EXPECT_EQ(validation.steps[0].step, "b");
  EXPECT_EQ(validation.steps[0].findings[0].check, "step-failed");
  EXPECT_EQ(validation.steps[0].findings[0].error.where.file, "f");
  EXPECT_EQ(validation.judgement(), Judgement::kUndecided);
  EXPECT_TRUE(validation.not_run.empty());
}

TEST(Validation, NoStepRunsOnAFolderThatDoesNotOpen) {
  const StepReport bad{.step = "structure", .findings = {Told(Severity::kError, Code::kMismatch)}};
  const StepReport warned{.step = "structure",
                          .findings = {Told(Severity::kWarning, Code::kMismatch)},
                          .compared = {{"files", 1}}};
  const ValidationStep later = Step("later", StepReport{.step = "later", .compared = {{"x", 1}}});
  const Validation stopped = Validate({}, {Step("structure", bad), later}, {});
  EXPECT_EQ(stopped.steps.size(), 1u);
  EXPECT_EQ(stopped.not_run, std::vector<std::string>{"later"});
  EXPECT_EQ(Validate({}, {Step("structure", warned), later}, {}).steps.size(), 2u);
}

// An accepting step that compared nothing has shown nothing.
TEST(Validation, AnEmptyComparisonIsNoAcceptance) {
  using Counts = std::map<std::string, uint64_t>;
  for (const Counts& counts : {Counts{}, Counts{{"cases", 2}, {"rows", 0}}}) {
    const StepReport report{.step = "behaviour", .compared = counts};
    const Validation validation = Validate({}, {Step("behaviour", report)}, {});
    EXPECT_EQ(validation.judgement(), Judgement::kUndecided);
    ASSERT_EQ(validation.steps[0].findings.size(), 1u);
    EXPECT_EQ(validation.steps[0].findings[0].check, "nothing-compared");
  }
  const StepReport full{.step = "behaviour", .compared = {{"cases", 2}, {"rows", 1}}};
  const Validation validation = Validate({}, {Step("behaviour", full)}, {});
  EXPECT_EQ(validation.judgement(), Judgement::kAccepted);
  EXPECT_EQ(ValidationJson(validation, "1")["steps"][0]["compared"],
            (Json{{"cases", 2}, {"rows", 1}}));
  // What was found stands, however little was compared before it.
  const StepReport bad{.step = "a", .findings = {Told(Severity::kError, Code::kMismatch)}};
  EXPECT_EQ(Validate({}, {Step("a", bad)}, {}).steps[0].findings.size(), 1u);
}

JudgedFile File(const char* folder, const std::string& path, const std::string& sha256) {
  return {.folder = folder,
          .name = "model.safetensors",
          .path = path,
          .stamp = StampOf(path).value_or(FileStamp{}),
          .sha256 = sha256};
}

TEST(Validation, AFileKeepsTheDigestOfItsOwnFolder) {
  const std::string path = ScratchFolder() + ".file";
  ASSERT_TRUE(WriteText(path, "bytes").has_value());
  const StepReport headers{.step = "structure",
                           .compared = {{"files", 2}},
                           .files = {File(kDrafterFolder, path, ""), File(kModelFolder, path, "")}};
  const StepReport whole{
      .step = "numbers",
      .compared = {{"files", 2}},
      .files = {File(kModelFolder, path, "aa"), File(kDrafterFolder, path, "bb")}};
  const Validation validation =
      Validate({.folder = "f"}, {Step("structure", headers), Step("numbers", whole)}, {});
  EXPECT_EQ(validation.judgement(), Judgement::kAccepted) << ValidationText(validation);
  const Json json = ValidationJson(validation, "1");
  ASSERT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["files"][0]["folder"], "model");
  EXPECT_EQ(json["files"][0]["sha256"], "aa");
  EXPECT_EQ(json["files"][1]["folder"], "drafter");
  EXPECT_EQ(json["files"][1]["sha256"], "bb");
  EXPECT_EQ(json["files"][0]["bytes"], 5);
  EXPECT_EQ(json["digests"], (Json{{"complete", true}, {"why", ""}}));
  const Json half =
      ValidationJson(Validate({.folder = "f"}, {Step("structure", headers)}, {}), "1");
  EXPECT_EQ(half["files"][0]["sha256"], nullptr);
  EXPECT_EQ(half["digests"]["complete"], false);
}

// Digest and verdict would speak of other bytes.
TEST(Validation, AFileThatChangesAfterItsStepLeavesEverythingOpen) {
  const std::string path = ScratchFolder() + ".file";
  for (const bool read_again : {false, true}) {
    ASSERT_TRUE(WriteText(path, "bytes").has_value());
    const StepReport first{
        .step = "structure", .compared = {{"files", 1}}, .files = {File(kModelFolder, path, "aa")}};
    const ValidationStep second = {
        .name = "numbers", .run = [&](const StepProgress&) -> Result<StepReport> {
          EXPECT_TRUE(WriteText(path, "other bytes").has_value());
          StepReport report{.step = "numbers", .compared = {{"files", 1}}};
          if (read_again) report.files = {File(kModelFolder, path, "bb")};
          return report;
        }};
    const Validation validation = Validate({.folder = "f"}, {Step("structure", first), second}, {});
    EXPECT_EQ(validation.judgement(), Judgement::kUndecided);
    ASSERT_EQ(validation.steps[1].findings.size(), 1u);
    EXPECT_EQ(validation.steps[1].findings[0].check, "file-changed");
    EXPECT_EQ(validation.steps[1].findings[0].error.where.file, path);
  }
}

TEST(Validation, WhatWasMeasuredIsToldBelowItsStep) {
  Validation validation = With({});
  validation.steps[0].lines = {"mean KL 0.1 nat\x1b"};
  EXPECT_NE(ValidationText(validation).find("structure: accepted (3 files)\n  mean KL 0.1 nat?\n"),
            std::string::npos);
}

TEST(Validation, RunsOnTheGoldenModelAndItsDrafter) {
  CheckpointCopy::Complete().Write(ScratchFolder());
  CheckpointCopy::Drafter().Write(ScratchFolder() + ".drafter");
  uint64_t calls = 0;
  const ValidationOptions options{.folder = ScratchFolder(),
                                  .drafter = ScratchFolder() + ".drafter"};
  const Validation validation = Validate(options, {StructureStep(options)},
                                         [&calls](std::string_view, uint64_t done, uint64_t total) {
                                           EXPECT_LE(done, total);
                                           ++calls;
                                         });
  EXPECT_EQ(validation.judgement(), Judgement::kAccepted) << ValidationText(validation);
  EXPECT_EQ(validation.gravest(), nullptr);
  EXPECT_GT(calls, 0u);
  ASSERT_EQ(validation.steps.size(), 1u);
  const Json& facts = *validation.steps[0].facts;
  EXPECT_EQ(facts["model"]["tensors"], 256);
  EXPECT_EQ(facts["model"]["used_tensors"], 256);
  EXPECT_EQ(facts["model"]["stop_ids"], Json::array({4070, 4072}));
  EXPECT_EQ(facts["drafter"]["used_tensors"], 51);
  size_t shards = 0;
  for (const JudgedFile& file : validation.files) {
    if (file.name == "model.safetensors") {
      ++shards;
      EXPECT_EQ(file.sha256, "");
      continue;
    }
    const auto bytes = MappedFile::Open(file.path);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(file.sha256, Sha256Hex(bytes->bytes())) << file.path;
  }
  EXPECT_EQ(shards, 2u);
  EXPECT_EQ(validation.steps[0].compared.at("tensors"), 256u);
  EXPECT_EQ(validation.steps[0].compared.at("drafter_tensors"), 51u);
}

}  // namespace
}  // namespace hallmark
