// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/issue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cases/draft_golden.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/cases/model_golden.h"
#include "conformance/cases/prompt_runs.h"
#include "conformance/harness/tolerances.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"
#include "engine/draft/drafter.h"
#include "engine/format/checkpoint.h"
#include "receipts/emit/atomic_file.h"
#include "receipts/emit/machine.h"
#include "receipts/emit/statement.h"
#include "receipts/emit/summary.h"

namespace hallmark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSpeedTokens = 32;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<FileDigest> DigestOf(const std::string& name, const std::string& path) {
  const MappedFile file = TRY(MappedFile::Open(path));
  FileDigest digest{name, file.bytes().size(), Sha256Hex(file.bytes())};
  TRY(file.Intact());
  return digest;
}

// Every file the engine read of a folder; the shards apart, since they are subjects too.
struct FolderDigests {
  std::vector<FileDigest> shards;
  std::vector<FileDigest> all;
};

Result<FolderDigests> DigestFolder(const std::string& folder, std::span<const CheckpointFile> files,
                                   std::span<const CheckpointFile> shard_files) {
  FolderDigests digests;
  std::set<std::string> shards;
  for (const CheckpointFile& shard : shard_files) shards.insert(shard.name);
  bool has_tokenizer = false;
  for (const CheckpointFile& file : files) {
    digests.all.push_back(TRY(DigestOf(file.name, file.path)));
    if (shards.contains(file.name)) digests.shards.push_back(digests.all.back());
    has_tokenizer = has_tokenizer || file.name == "tokenizer.json";
  }
  const std::string tokenizer = folder + "/tokenizer.json";
  if (!has_tokenizer && HasEntry(tokenizer)) {
    digests.all.push_back(TRY(DigestOf("tokenizer.json", tokenizer)));
  }
  return digests;
}

struct SubjectDigests {
  FolderDigests checkpoint;
  FolderDigests drafter;  // empty without one
  std::map<std::string, std::string> by_name;
};

Result<SubjectDigests> DigestSubjects(const Session& session) {
  SubjectDigests digests;
  const Checkpoint& checkpoint = session.checkpoint();
  digests.checkpoint =
      TRY(DigestFolder(checkpoint.folder(), checkpoint.files(), checkpoint.shards()));
  for (const FileDigest& file : digests.checkpoint.all) digests.by_name[file.name] = file.sha256;
  if (const DrafterCheckpoint* drafter = session.drafter_checkpoint()) {
    digests.drafter = TRY(DigestFolder(drafter->folder(), drafter->files(), drafter->shards()));
    for (const FileDigest& file : digests.drafter.all) {
      digests.by_name[kDrafterPrefix + file.name] = file.sha256;
    }
  }
  return digests;
}

// Golden files that the cases up to a level read.
Result<std::vector<FileDigest>> DigestVectors(Level level, const std::string& golden,
                                              const GoldenModel* model,
                                              const GoldenModel* drafter) {
  std::vector<std::string> names = {"format/exl3_vectors.json"};
  if (level >= Level::kL1) {
    names.insert(names.end(),
                 {"kernel/exl3_reconstruct.safetensors", "models/scribe-11m-exl3/tokenizer.json",
                  "run/sampler_draws.json", "text/tokenizer_vectors.json"});
  }
  if (model != nullptr) names.push_back("models/" + model->name + "/golden.safetensors");
  if (drafter != nullptr) {
    for (const char* file : {"golden.safetensors", "golden_long.safetensors"}) {
      const std::string name = "models/" + drafter->name + "/" + file;
      if (HasEntry(golden + "/" + name)) names.push_back(name);
    }
  }
  std::vector<FileDigest> vectors;
  for (const std::string& name : names) {
    auto vector = DigestOf(name, golden + "/" + name);
    if (!vector.has_value()) {
      // The fault is not the checkpoint's: without its vectors a receipt decides nothing.
      return Fail(Code::kIo,
                  "a published vector file could not be read, expected it in the golden "
                  "folder: " +
                      vector.error().message,
                  vector.error().where);
    }
    vectors.push_back(*std::move(vector));
  }
  return vectors;
}

ReceiptPrompt PromptFacts(const Session& session, std::string_view name, uint64_t seed,
                          const std::vector<int32_t>& ids) {
  return {.name = std::string(name),
          .rule = "id i = SplitMix64(seed) below " + std::to_string(session.drawable_ids()),
          .seed = fmt::format("{:016x}", seed),
          .tokens = ids.size(),
          .sha256 = Sha256HexOf(std::span<const int32_t>(ids))};
}

std::vector<ReceiptPrompt> PromptsOf(Level level, const Session& session) {
  const int64_t drawable = session.drawable_ids();
  std::vector<ReceiptPrompt> prompts;
  if (level >= Level::kL2) {
    prompts.push_back(PromptFacts(session, "built-in", kPromptSeed, BuiltInPrompt(drawable)));
  }
  if (level >= Level::kL3) {
    for (const LanePrompt& prompt : LanePrompts()) {
      prompts.push_back(PromptFacts(session, prompt.name, prompt.seed,
                                    RulePrompt(drawable, prompt.tokens, prompt.seed)));
    }
  }
  return prompts;
}

void DescribeDrafting(const DrafterOptions& options, ReceiptCore& core) {
  core.samplings = LaneSamplingTexts();
  core.drafter_weights = options.weights == DrafterWeights::kAffine4 ? "4bit" : "stored";
  for (const IdSpan& span : options.vocabulary) {
    core.draft_vocabulary.emplace_back(span.begin, span.end);
  }
}

// Decoding speed of this very run, for the context.
Result<Json> MeasureSpeeds(Session& session) {
  std::vector<int32_t> prompt = BuiltInPrompt(session.drawable_ids());
  const Generation generation =
      TRY(session.Generate({.prompt = prompt, .max_tokens = kSpeedTokens, .ignore_stop = true}));
  const auto per_second = [](double tokens, double seconds) {
    return seconds > 0 ? tokens / seconds : 0.0;
  };
  return Json{{"prompt_tokens_per_second",
               per_second(static_cast<double>(prompt.size()), generation.prompt_seconds)},
              {"decode_tokens_per_second",
               per_second(static_cast<double>(generation.rounds), generation.decode_seconds)}};
}

Json VerdictJson(const Verdict& verdict) {
  return {{"outcome", OutcomeName(verdict.outcome)}, {"missing", verdict.missing}};
}

// The folder a receipt goes into. One that was made for a receipt that never came is removed again.
class OutFolder {
 public:
  static Result<OutFolder> Make(const std::string& path) {
    std::error_code error;
    const bool made = std::filesystem::create_directories(path, error);
    if (!error && std::filesystem::is_directory(path, error)) {
      OutFolder folder(made ? path : "");
      if (::access(path.c_str(), W_OK | X_OK) == 0) return folder;
      error = std::error_code(errno, std::generic_category());
      return Fail(Code::kIo, "the folder cannot be written: " + error.message(), {.file = path});
    }
    return Fail(Code::kIo,
                "the folder could not be made: " + (error ? error.message() : "it is a file"),
                {.file = path});
  }
  OutFolder(OutFolder&& other) noexcept : made_(std::exchange(other.made_, "")) {}
  OutFolder& operator=(OutFolder&&) = delete;
  ~OutFolder() {
    std::error_code ignored;
    if (!made_.empty()) std::filesystem::remove(made_, ignored);  // an empty one only
  }
  void Keep() { made_.clear(); }

 private:
  explicit OutFolder(std::string made) : made_(std::move(made)) {}
  std::string made_;
};

}  // namespace

Result<IssuedReceipt> IssueReceipt(Session& session, const ReceiptRequest& request) {
  const auto start = Clock::now();
  const std::string started = UtcNow();
  // First of all, so that an hour's work is not lost on a folder that cannot be written.
  OutFolder folder = TRY(OutFolder::Make(request.out_directory));
  // Before the work, too: a new build may take the program's place meanwhile.
  const FileDigest binary = TRY(BinaryDigest());

  if ((request.level >= Level::kL3) != (session.drafter() != nullptr)) {
    return Fail(Code::kOutOfRange,
                session.drafter() == nullptr
                    ? "level L3 shows that drafting changes nothing: it needs a drafter"
                    : "a drafter takes part in level L3 alone",
                {.flag = "--drafter"});
  }
  const SubjectDigests digests = TRY(DigestSubjects(session));
  const MustPassList golden_list = BuildMustPass(Level::kL2);
  const MustPassList drafter_list = BuildMustPass(Level::kL3);
  const GoldenModel* model =
      request.level >= Level::kL2 ? FindGoldenModel(golden_list, digests.by_name) : nullptr;
  const GoldenModel* drafter =
      request.level >= Level::kL3 ? FindGoldenModel(drafter_list, digests.by_name) : nullptr;
  const CaseSubject subject{.session = &session, .golden = request.golden};
  CaseRegistry registry;
  const std::optional<BackendDevice> device = session.device();
  ReceiptCore core{
      .level = request.level,
      .checkpoint = digests.checkpoint.all,
      .contract = BuildContract(),
      .tolerances = Sha256Hex(TolerancesText()),
      .drafter = digests.drafter.all,
      .kv = session.options().kv == KvType::kBf16 ? "bf16" : "fp8",
      .arithmetic = TRY(ArithmeticIdOf(session.backend_name(), device ? device->fingerprint : ""))};
  for (int i = 0; i <= static_cast<int>(request.level); ++i) {
    const Level level = static_cast<Level>(i);
    TRY(AddLevelCases(level, subject, registry));
    TRY(AddBackendCases(level, session.backend_name(), subject, registry));
    core.must_pass[std::string(LevelName(level))] = MustPassDigest(level);
  }
  if (model != nullptr) TRY(AddModelGoldenCases(subject, model->name, registry));
  if (drafter != nullptr) TRY(AddDraftGoldenCases(subject, drafter->name, registry));
  if (session.drafter() != nullptr) DescribeDrafting(session.options().drafter_options, core);
  core.vectors = TRY(DigestVectors(request.level, request.golden, model, drafter));
  core.prompts = PromptsOf(request.level, session);

  const size_t total = registry.Names().size();
  size_t index = 0;
  core.rows = registry.Run("", [&](std::string_view name) {
    if (request.on_case) request.on_case(++index, total, name);
  });
  IssuedReceipt issued;
  issued.verdict = Judge(request.level, session.backend_name(), digests.by_name, core.rows);

  const Json core_json = CoreJson(core);
  issued.core_digest = CoreDigest(core_json);
  std::vector<FileDigest> subjects = digests.checkpoint.shards;
  for (FileDigest shard : digests.drafter.shards) {
    shard.name = kDrafterPrefix + shard.name;
    subjects.push_back(std::move(shard));
  }
  subjects.push_back(binary);
  const Json speeds = request.level >= Level::kL2 ? TRY(MeasureSpeeds(session)) : Json::object();
  const double seconds = SecondsSince(start);
  Json licences = {{"checkpoint", StatedLicence(session.checkpoint().folder())}};
  if (session.drafter_checkpoint() != nullptr) {
    licences["drafter"] = StatedLicence(session.drafter_checkpoint()->folder());
  }
  Json engine = {{"version", HallmarkVersion()},
                 {"backend", session.backend_name()},
                 {"tier", session.tier()},
                 {"threads", session.options().threads},
                 {"binary_sha256", binary.sha256}};
  if (device) engine["device"] = DeviceFacts(*device);
  const Json context = {
      {"engine", engine},
      {"build", BuildFacts()},
      {"host", HostFacts()},
      {"times", {{"started", started}, {"finished", UtcNow()}, {"seconds", seconds}}},
      {"speeds", speeds},
      {"licences", licences},
      {"verdict", VerdictJson(issued.verdict)}};

  const std::string name = ReceiptName(request.level, core.arithmetic, issued.core_digest);
  issued.path = request.out_directory + "/" + name + ".intoto.jsonl";
  issued.summary_path = request.out_directory + "/" + name + ".txt";
  issued.summary = SummaryText(
      {.checkpoint = session.checkpoint().folder(),
       .subject =
           device
               ? fmt::format("{} ({}, {})", session.backend_name(), device->name, session.tier())
               : fmt::format("{} ({}, {} thread{})", session.backend_name(), session.tier(),
                             session.options().threads, session.options().threads == 1 ? "" : "s"),
       .seconds = seconds},
      core, issued.core_digest, issued.verdict);
  // The statement last: where one lies, its summary lies beside it.
  TRY(WriteFileAtomically(issued.summary_path, issued.summary));
  const Status written =
      WriteFileAtomically(issued.path, StatementJson(subjects, core_json, context).dump() + "\n");
  if (!written.has_value()) {
    std::error_code ignored;  // a summary of a receipt that is not there would only mislead
    std::filesystem::remove(issued.summary_path, ignored);
    return Fail(written.error());
  }
  folder.Keep();
  return issued;
}

}  // namespace hallmark
