// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/numbers.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/validate/linear_scales.h"
#include "conformance/validate/siblings.h"
#include "conformance/validate/tensor_roles.h"
#include "conformance/validate/tensor_scan.h"
#include "conformance/validate/value_checks.h"
#include "conformance/validate/vector_checks.h"
#include "engine/base/float_types.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_inventory.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

// Zeros of this size in a row were hardly trained: a page of a file.
constexpr uint64_t kZeroRegion = 4096;
// Plain tensors of one kind: the largest values of two layers may well differ tenfold.
constexpr double kPlainOutlier = 1000;

// Every tensor in the order in which the bytes lie.
std::vector<ScanTarget> Targets(std::span<const TensorView> tensors,
                                const std::vector<LinearScales>& scales) {
  std::map<std::string_view, const LinearScales*> trellises;
  for (const LinearScales& linear : scales) trellises[linear.group->trellis.name] = &linear;
  std::vector<ScanTarget> targets;
  for (const TensorView& tensor : tensors) {
    ScanTarget target{.tensor = &tensor};
    if (const auto found = trellises.find(tensor.name); found != trellises.end()) {
      const Exl3Group& group = *found->second->group;
      target.rate = {group.codebook, group.k2};
      target.tile_columns = group.n / kTileSide;
      target.live = found->second->live;
    }
    targets.push_back(std::move(target));
  }
  std::ranges::sort(targets, [](const ScanTarget& a, const ScanTarget& b) {
    return std::tie(a.tensor->file, a.tensor->file_offset) <
           std::tie(b.tensor->file, b.tensor->file_offset);
  });
  return targets;
}

// The magnitude that the scan found largest.
double Largest(const TensorView& tensor, const TensorScan& scan) {
  switch (tensor.dtype) {
    case DType::kF16:
      return HalfToFloat(static_cast<uint16_t>(scan.largest_bits));
    case DType::kBF16:
      return Bf16ToFloat(static_cast<uint16_t>(scan.largest_bits));
    default:
      return std::bit_cast<float>(scan.largest_bits);
  }
}

class Judge {
 public:
  Judge(const TensorRoles& roles, std::span<const ScanTarget> targets,
        std::span<const TensorScan> scans, StepFindings* findings)
      : roles_(roles), targets_(targets), scans_(scans), findings_(findings) {}

  void Look() {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const TensorView& tensor = *targets_[i].tensor;
      const TensorScan& scan = scans_[i];
      const TensorRole role = roles_.Of(tensor);
      Finite(tensor, scan, role);
      if (role == TensorRole::kTrellis) Tiles(targets_[i], scan);
      if (role == TensorRole::kMatrix || role == TensorRole::kTable) Zeros(tensor, scan, role);
      if (role == TensorRole::kMatrix && Largest(tensor, scan) > 0) {
        plain_.Add(tensor.name, Largest(tensor, scan));
      }
    }
    for (size_t i = 0; i < targets_.size(); ++i) Plain(*targets_[i].tensor, scans_[i]);
    Tails();
  }

 private:
  void Tell(std::string_view check, Code code, Locator where, std::string message) {
    findings_->Add(check, {.code = code, .message = std::move(message), .where = std::move(where)});
  }
  static Locator At(const TensorView& tensor, uint64_t byte) {
    Locator where = tensor.where();
    where.byte = tensor.file_offset + byte;
    return where;
  }

  void Finite(const TensorView& tensor, const TensorScan& scan, TensorRole role) {
    if (scan.not_finite == 0) return;
    const auto size = static_cast<uint64_t>(DTypeSize(tensor.dtype));
    Tell(role == TensorRole::kUnused ? "unused-not-finite" : "value-not-finite", Code::kOutOfRange,
         At(tensor, scan.first_not_finite * size),
         fmt::format("{} of {} values are infinite or not a number, the first at index {}",
                     scan.not_finite, scan.values, scan.first_not_finite));
  }

  void Tiles(const ScanTarget& target, const TensorScan& scan) {
    const TensorView& tensor = *target.tensor;
    const auto at = [&](uint64_t tile) {
      return At(tensor, tile * static_cast<uint64_t>(2 * TileWords(target.rate.k2)));
    };
    const auto text = [&](uint64_t count, std::string_view what, uint64_t first) {
      return fmt::format("{} of {} tiles {}, the first is tile [{}, {}]", count, scan.tiles, what,
                         first / static_cast<uint64_t>(target.tile_columns),
                         first % static_cast<uint64_t>(target.tile_columns));
    };
    if (scan.all_equal) {
      Tell("trellis-one-tile", Code::kOutOfRange, at(0),
           fmt::format("all {} tiles are the same", scan.tiles));
      return;
    }
    if (scan.constant > 0) {
      std::string message = text(scan.constant, "hold one word all over", scan.first_constant);
      if (scan.zeros.longest > 0) {
        message += fmt::format("; {} zero bytes in a row from byte {}", scan.zeros.longest,
                               tensor.file_offset + scan.zeros.longest_begin);
      }
      Tell("constant-tiles", Code::kOutOfRange, at(scan.first_constant), std::move(message));
    }
    if (scan.blank > 0) {
      Tell("blank-tiles", Code::kOutOfRange, at(scan.first_blank),
           text(scan.blank, "decode to nearly nothing", scan.first_blank));
    }
    if (scan.repeated > 0) {
      Tell("repeated-tiles", Code::kOutOfRange, at(scan.first_repeated),
           text(scan.repeated, "are the same as the one before", scan.first_repeated));
    }
  }

  void Zeros(const TensorView& tensor, const TensorScan& scan, TensorRole role) {
    const ZeroRuns& zeros = scan.zeros;
    if (zeros.all_zero()) {
      Tell("tensor-all-zero", Code::kOutOfRange, tensor.where(),
           fmt::format("all {} values are zero", tensor.elements()));
      return;
    }
    const bool padding = role == TensorRole::kTable && zeros.longest == zeros.trailing;
    if (zeros.longest < kZeroRegion || padding) return;
    Tell("zero-region", Code::kOutOfRange, At(tensor, zeros.longest_begin),
         fmt::format("{} bytes in a row are zero", zeros.longest));
  }

  void Plain(const TensorView& tensor, const TensorScan& scan) {
    const double largest = Largest(tensor, scan);
    const double middle = plain_.MedianFor(tensor.name);
    if (roles_.Of(tensor) != TensorRole::kMatrix || largest <= 0 || middle <= 0) return;
    if (Apart(largest, middle) <= kPlainOutlier) return;
    Tell("plain-outlier", Code::kOutOfRange, tensor.where(),
         fmt::format("the largest magnitude is {:.4g}, among its kind that is {:.4g} in the middle",
                     largest, middle));
  }

  // Zeros up to a shard's end, over as many tensors as they reach: the part of a file that was
  // set aside and never written.
  void Tails() {
    std::map<std::string_view, size_t> last;
    for (size_t i = 0; i < targets_.size(); ++i) last[targets_[i].tensor->file] = i;
    for (const auto& [file, end] : last) {
      uint64_t zeros = 0;
      size_t tensors = 0;
      bool unnatural = false;
      for (size_t i = end + 1; i-- > 0 && targets_[i].tensor->file == file;) {
        const ZeroRuns& runs = scans_[i].zeros;
        const TensorRole role = roles_.Of(*targets_[i].tensor);
        // A table's last rows may be padding; its beginning may not.
        const bool counts = role == TensorRole::kTrellis || role == TensorRole::kMatrix ||
                            (role == TensorRole::kTable && runs.all_zero());
        unnatural = unnatural || (counts && runs.trailing > 0);
        zeros += runs.trailing;
        tensors += runs.trailing > 0;
        if (runs.trailing < runs.total) break;
      }
      if (zeros < kZeroRegion || !unnatural) continue;
      const TensorView& tensor = *targets_[end].tensor;
      const uint64_t begin = tensor.file_offset + tensor.bytes.size() - zeros;
      Tell("zero-tail", Code::kOutOfRange, {.file = tensor.file, .byte = begin},
           fmt::format("the file's last {} bytes, of {} tensors, are zero", zeros, tensors));
    }
  }

  const TensorRoles& roles_;
  std::span<const ScanTarget> targets_;
  std::span<const TensorScan> scans_;
  StepFindings* findings_;
  Siblings plain_;
};

Json ScalesJson(const std::vector<LinearScales>& scales) {
  Siblings gains;
  double largest = 0;
  for (const LinearScales& linear : scales) {
    gains.Add(linear.source->name(), linear.gain);
    for (const ScaleVector* side : {&linear.input, &linear.output}) {
      if (!side->packed) largest = std::max(largest, double{side->largest});
    }
  }
  Json kinds = Json::object();
  for (const auto& [kind, values] : gains.kinds()) {
    kinds[kind] = {{"linears", values.size()},
                   {"least_gain", *std::ranges::min_element(values)},
                   {"median_gain", Siblings::Median(values)},
                   {"most_gain", *std::ranges::max_element(values)}};
  }
  Json json = {{"kinds", std::move(kinds)}};
  if (largest > 0) {
    json["largest_scale"] = largest;
    json["largest_scale_times_to_fp16_limit"] = 65504 / largest;
  }
  return json;
}

// One folder's tensors, scanned and judged.
class Folder {
 public:
  Folder(const NumbersOptions& options, const StepProgress& progress, StepFindings* findings)
      : options_(options), progress_(progress), findings_(findings) {}

  Result<Json> Model() {
    const Checkpoint checkpoint = TRY(Checkpoint::Open(options_.folder));
    const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
    const LinearSource* head = inventory.head ? &*inventory.head : nullptr;
    std::vector<JudgedFile> shards = FilesOf(kModelFolder, checkpoint.shards());
    Json facts =
        TRY(Scan(checkpoint.tensors(), TensorRoles(inventory), Linears(inventory), head, &shards));
    TRY(JudgeVectors(inventory, findings_, &facts["vectors"]));
    TRY(checkpoint.Intact());
    return facts;
  }

  const std::vector<JudgedFile>& files() const { return files_; }

  Result<Json> Drafter() {
    const DrafterCheckpoint checkpoint = TRY(DrafterCheckpoint::Open(*options_.drafter));
    const DrafterInventory inventory = TRY(TakeDrafterInventory(checkpoint));
    std::vector<JudgedFile> shards = FilesOf(kDrafterFolder, checkpoint.shards());
    Json facts = TRY(
        Scan(checkpoint.tensors(), TensorRoles(inventory), Linears(inventory), nullptr, &shards));
    TRY(checkpoint.Intact());
    return facts;
  }

 private:
  // From before any data is read.
  static std::vector<JudgedFile> FilesOf(const char* folder,
                                         std::span<const CheckpointFile> shards) {
    std::vector<JudgedFile> files;
    for (const CheckpointFile& shard : shards) {
      files.push_back({.folder = folder,
                       .name = shard.name,
                       .path = shard.path,
                       .stamp = StampOf(shard.path).value_or(FileStamp{})});
    }
    return files;
  }

  Result<Json> Scan(std::span<const TensorView> tensors, const TensorRoles& roles,
                    const std::vector<const LinearSource*>& linears, const LinearSource* head,
                    std::vector<JudgedFile>* shards) {
    std::map<std::string, std::string> digests;
    for (const JudgedFile& shard : *shards) digests[shard.path];
    const std::vector<LinearScales> scales = TRY(ReadLinearScales(linears));
    const std::vector<ScanTarget> targets = Targets(tensors, scales);
    const std::vector<TensorScan> scans = TRY(ScanTensors(
        targets, {.threads = options_.threads, .digests = options_.digests ? &digests : nullptr},
        progress_));
    for (JudgedFile& shard : *shards) {
      shard.sha256 = digests.at(shard.path);
      files_.push_back(std::move(shard));
    }
    Judge(roles, targets, scans, findings_).Look();
    JudgeLinearScales(scales, head, findings_);
    uint64_t bytes = 0;
    uint64_t values = 0;
    uint64_t tiles = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      bytes += targets[i].tensor->bytes.size();
      values += scans[i].values;
      tiles += scans[i].tiles;
    }
    return Json{{"bytes", bytes},
                {"tensors", targets.size()},
                {"tiles", tiles},
                {"values", values},
                {"linears", ScalesJson(scales)}};
  }

  const NumbersOptions& options_;
  const StepProgress& progress_;
  StepFindings* findings_;
  std::vector<JudgedFile> files_;
};

}  // namespace

Result<StepReport> ValidateNumbers(const NumbersOptions& options, const StepProgress& progress) {
  StepFindings findings(ValueChecks());
  Folder folder(options, progress, &findings);
  Json facts = TRY(folder.Model());
  std::map<std::string, uint64_t> compared;
  for (const char* what : {"bytes", "tensors"}) compared[what] = facts.at(what).get<uint64_t>();
  if (options.drafter) {
    facts["drafter"] = TRY(folder.Drafter());
    for (const std::string what : {"bytes", "tensors"}) {
      compared["drafter_" + what] = facts.at("drafter").at(what).get<uint64_t>();
    }
  }
  return StepReport{.step = "numbers",
                    .findings = findings.Sorted(),
                    .facts = std::make_shared<const Json>(std::move(facts)),
                    .compared = std::move(compared),
                    .files = folder.files()};
}

}  // namespace hallmark
