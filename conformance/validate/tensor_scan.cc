// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/tensor_scan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "conformance/validate/shard_hasher.h"
#include "conformance/validate/shard_reader.h"
#include "engine/backend/cpu/parallel.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// Pieces between two looks at the progress; bounds nothing else.
constexpr size_t kBatch = 256;
// The same where a batch's bytes are held until they are hashed.
constexpr size_t kHashedBatch = 32;
constexpr size_t kMaxTileBytes = 2 * kMaxTileWords;
// Below it a tile of one word stands for weights that were zero, as far as the codebook can say so:
// about a third of a codebook's own values. The words 0 and 0xFFFF of all three lie above.
constexpr double kBlankRms = 0.4;

struct Piece {
  size_t target = 0;
  uint64_t begin = 0;  // in the tensor
  uint64_t bytes = 0;
};

struct PieceScan {
  TensorScan scan;
  std::optional<uint64_t> first_number;  // of the first tile that was judged
  std::array<std::byte, kMaxTileBytes> first{}, last{};
};

uint64_t TileBytes(const ScanTarget& target) {
  return static_cast<uint64_t>(2 * TileWords(target.rate.k2));
}

// Largest magnitude, as bits, of `count` values.
template <typename Signed>
Signed LargestBits(const Signed* values, size_t count, Signed mask) {
  Signed largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max<Signed>(largest, values[i] & mask);
  return largest;
}

// Counts what is not finite in a block that holds such a value; keeps the largest of the others.
template <typename Signed>
void CountNotFinite(const Signed* values, size_t count, Signed mask, Signed exponent,
                    uint64_t first_index, TensorScan* scan) {
  for (size_t i = 0; i < count; ++i) {
    const Signed bits = values[i] & mask;
    if (bits < exponent) {
      scan->largest_bits = std::max(scan->largest_bits, static_cast<uint32_t>(bits));
    } else if (scan->not_finite++ == 0) {
      scan->first_not_finite = first_index + i;
    }
  }
}

// `exponent`: the bits of an infinity. Indices count from the piece's begin.
template <typename Signed>
void ScanFloats(const std::byte* data, uint64_t bytes, Signed exponent, TensorScan* scan) {
  constexpr Signed kMask = std::numeric_limits<Signed>::max();
  const auto* values = reinterpret_cast<const Signed*>(data);
  const size_t count = bytes / sizeof(Signed);
  constexpr size_t kBlock = kZeroUnit / sizeof(Signed);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const Signed largest = LargestBits(values + begin, size, kMask);
    if (largest >= exponent) {
      CountNotFinite(values + begin, size, kMask, exponent, begin, scan);
    } else {
      scan->largest_bits = std::max(scan->largest_bits, static_cast<uint32_t>(largest));
    }
    scan->zeros.Add(size * sizeof(Signed), largest == 0);
  }
  scan->values = count;
}

void ScanBytes(const std::byte* data, uint64_t bytes, TensorScan* scan) {
  for (uint64_t begin = 0; begin < bytes; begin += kZeroUnit) {
    const uint64_t size = std::min(kZeroUnit, bytes - begin);
    std::byte any{0};
    for (uint64_t i = 0; i < size; ++i) any |= data[begin + i];
    scan->zeros.Add(size, any == std::byte{0});
  }
}

// The word that a tile consists of, if it is one.
std::optional<uint16_t> OneWord(const std::byte* tile, size_t bytes) {
  uint64_t first = 0;
  uint64_t second = 0;
  std::memcpy(&first, tile, sizeof(first));
  std::memcpy(&second, tile + sizeof(first), sizeof(second));
  if (first != second || first != (first & 0xFFFF) * 0x0001000100010001ull) return std::nullopt;
  if (std::memcmp(tile, tile + 2, bytes - 2) != 0) return std::nullopt;
  return static_cast<uint16_t>(first);
}

// Judges tiles of one word; neighbours of such a kind are alike, so the last verdict is kept.
class OneWordTiles {
 public:
  explicit OneWordTiles(Exl3Rate rate) : rate_(rate) {}

  bool IsBlank(uint16_t word) {
    if (word_ != word) {
      std::array<uint16_t, kMaxTileWords> words;
      words.fill(word);
      std::array<uint16_t, kTileWeights> values;
      DecodeTile(words.data(), rate_, values.data());
      double squares = 0;
      for (const uint16_t value : values) squares += std::pow(HalfToFloat(value), 2);
      word_ = word;
      blank_ = std::sqrt(squares / kTileWeights) < kBlankRms;
    }
    return blank_;
  }

 private:
  Exl3Rate rate_;
  int32_t word_ = -1;  // the latest that was judged; none yet
  bool blank_ = false;
};

// `first_tile`: number of the piece's first tile in the tensor.
void ScanTiles(const ScanTarget& target, const std::byte* data, uint64_t bytes, uint64_t first_tile,
               PieceScan* piece) {
  TensorScan& scan = piece->scan;
  OneWordTiles one_word(target.rate);
  const size_t size = TileBytes(target);
  const uint64_t tiles = bytes / size;
  const std::byte* before = nullptr;
  const std::byte* first = nullptr;
  scan.all_equal = true;
  for (uint64_t i = 0; i < tiles; ++i) {
    const std::byte* tile = data + i * size;
    const uint64_t number = first_tile + i;
    const std::optional<uint16_t> word = OneWord(tile, size);
    scan.zeros.Add(size, word == 0);
    const auto column = static_cast<int64_t>(number) % target.tile_columns;
    if (!target.live.empty() && !target.live[static_cast<size_t>(column / 8)]) continue;
    ++scan.tiles;
    if (word && one_word.IsBlank(*word)) {
      if (scan.blank++ == 0) scan.first_blank = number;
    } else if (word) {
      if (scan.constant++ == 0) scan.first_constant = number;
    } else if (before != nullptr && std::memcmp(before, tile, size) == 0) {
      if (scan.repeated++ == 0) scan.first_repeated = number;
    }
    if (first == nullptr) {
      first = tile;
      piece->first_number = number;
    }
    scan.all_equal = scan.all_equal && std::memcmp(first, tile, size) == 0;
    before = tile;
  }
  if (first == nullptr) return;
  std::memcpy(piece->first.data(), first, size);
  std::memcpy(piece->last.data(), before, size);
}

void ScanPiece(const ScanTarget& target, const Piece& place, const std::byte* data,
               PieceScan* piece) {
  if (target.rate.k2 != 0) {
    return ScanTiles(target, data, place.bytes, place.begin / TileBytes(target), piece);
  }
  TensorScan* scan = &piece->scan;
  switch (target.tensor->dtype) {
    case DType::kF16:
      return ScanFloats<int16_t>(data, place.bytes, 0x7C00, scan);
    case DType::kBF16:
      return ScanFloats<int16_t>(data, place.bytes, 0x7F80, scan);
    case DType::kF32:
      return ScanFloats<int32_t>(data, place.bytes, 0x7F800000, scan);
    default:
      return ScanBytes(data, place.bytes, scan);
  }
}

// Adds a count and where it began, `offset` further on.
void Count(uint64_t more, uint64_t first, uint64_t offset, uint64_t* count, uint64_t* where) {
  if (*count == 0 && more > 0) *where = first + offset;
  *count += more;
}

// Pieces of one tensor, put together in their order.
class Merger {
 public:
  explicit Merger(const ScanTarget& target) : target_(target) { out_.all_equal = true; }

  void Add(const PieceScan& piece) {
    const TensorScan& scan = piece.scan;
    Count(scan.not_finite, scan.first_not_finite, out_.values, &out_.not_finite,
          &out_.first_not_finite);
    out_.values += scan.values;
    out_.largest_bits = std::max(out_.largest_bits, scan.largest_bits);
    out_.zeros.Append(scan.zeros);
    if (!piece.first_number) return;
    // The tile before the piece's first is in the piece before.
    if (last_ && *last_ == piece.first && !OneWord(piece.first.data(), TileBytes(target_))) {
      Count(1, *piece.first_number, 0, &out_.repeated, &out_.first_repeated);
    }
    Count(scan.constant, scan.first_constant, 0, &out_.constant, &out_.first_constant);
    Count(scan.blank, scan.first_blank, 0, &out_.blank, &out_.first_blank);
    Count(scan.repeated, scan.first_repeated, 0, &out_.repeated, &out_.first_repeated);
    out_.tiles += scan.tiles;
    if (!first_) first_ = piece.first;
    out_.all_equal = out_.all_equal && scan.all_equal && *first_ == piece.first;
    last_ = piece.last;
  }

  TensorScan Finish() {
    out_.all_equal = out_.all_equal && out_.tiles > 1;
    return out_;
  }

 private:
  using Tile = std::array<std::byte, kMaxTileBytes>;
  const ScanTarget& target_;
  TensorScan out_;
  std::optional<Tile> first_, last_;
};

// Pieces of all targets, none of them across two tiles.
std::vector<Piece> CutPieces(std::span<const ScanTarget> targets) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < targets.size(); ++i) {
    const uint64_t unit = targets[i].rate.k2 != 0 ? TileBytes(targets[i]) : kZeroUnit;
    const uint64_t step = kPieceBytes / unit * unit;
    const uint64_t bytes = targets[i].tensor->bytes.size();
    for (uint64_t begin = 0; begin < bytes; begin += step) {
      pieces.push_back({i, begin, std::min(step, bytes - begin)});
    }
  }
  return pieces;
}

// Calls `progress` four times a second at most.
class Pace {
 public:
  Pace(const StepProgress& progress, uint64_t total) : progress_(progress), total_(total) {}

  void Tell(uint64_t done) {
    if (!progress_) return;
    const auto now = std::chrono::steady_clock::now();
    if (done < total_ && now - last_ < std::chrono::milliseconds(250)) return;
    last_ = now;
    progress_("bytes", done, total_);
  }

 private:
  const StepProgress& progress_;
  const uint64_t total_;
  std::chrono::steady_clock::time_point last_{};
};

// Reads and scans the pieces batch by batch. Where files are hashed, a batch's bytes are held until
// the next one is under way: one member of the team hashes them while the others read on.
class Scanner {
 public:
  Scanner(std::span<const ScanTarget> targets, const ScanOptions& options,
          const StepProgress& progress)
      : targets_(targets),
        options_(options),
        progress_(progress),
        pool_(options.threads),
        hasher_(&reader_),
        mergers_(targets.begin(), targets.end()) {}

  Result<std::vector<TensorScan>> Run() {
    uint64_t total = 0;
    for (const ScanTarget& target : targets_) {
      TRY(reader_.Open(target.tensor->file));
      total += target.tensor->bytes.size();
    }
    TRY(pool_.Reserve(2 * kHashedBatch * kPieceBytes * hashes(), kPieceBytes));
    const std::vector<Piece> pieces = CutPieces(targets_);
    const size_t most = hashes() ? kHashedBatch : kBatch;
    Pace pace(progress_, total);
    uint64_t done = 0;
    for (size_t begin = 0; begin < pieces.size(); begin += most) {
      const auto batch = std::span(pieces).subspan(begin, std::min(most, pieces.size() - begin));
      TRY(ScanBatch(batch));
      for (const Piece& piece : batch) done += piece.bytes;
      pace.Tell(done);
    }
    if (hashes()) TRY(EndDigests());
    std::vector<TensorScan> scans;
    for (Merger& merger : mergers_) scans.push_back(merger.Finish());
    return scans;
  }

 private:
  bool hashes() const { return options_.digests != nullptr; }
  // The place of a batch's piece: of the batch under way, or of the one before it.
  std::byte* Held(size_t index, bool before) {
    const size_t half = (turn_ + (before ? 1 : 0)) % 2;
    return pool_.shared_scratch() + (half * kHashedBatch + index) * kPieceBytes;
  }

  Status ScanBatch(std::span<const Piece> batch) {
    std::vector<PieceScan> scans(batch.size());
    std::vector<Status> read(batch.size());
    Status hashed;
    const auto first = static_cast<int64_t>(!held_.empty());  // task 0 hashes
    pool_.ParallelFor(first + static_cast<int64_t>(batch.size()), [&](int64_t task, int member) {
      if (task < first) {
        hashed = HashHeld();
        return;
      }
      const auto i = static_cast<size_t>(task - first);
      const ScanTarget& target = targets_[batch[i].target];
      std::byte* place = hashes() ? Held(i, false) : pool_.own_scratch(member);
      const std::span<std::byte> data(place, batch[i].bytes);
      read[i] =
          reader_.Read(target.tensor->file, target.tensor->file_offset + batch[i].begin, data);
      if (read[i].has_value()) ScanPiece(target, batch[i], data.data(), &scans[i]);
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!read[i].has_value()) {
        Error error = read[i].error();
        error.where.tensor = targets_[batch[i].target].tensor->name;
        return Fail(std::move(error));
      }
      mergers_[batch[i].target].Add(scans[i]);
    }
    if (hashes()) {
      held_ = batch;
      turn_ = 1 - turn_;
    }
    return hashed;
  }

  Status HashHeld() {
    for (size_t i = 0; i < held_.size(); ++i) {
      const TensorView& tensor = *targets_[held_[i].target].tensor;
      TRY(hasher_.Add(tensor.file, tensor.file_offset + held_[i].begin,
                      {Held(i, true), held_[i].bytes}));
    }
    return {};
  }

  Status EndDigests() {
    TRY(HashHeld());
    TRY(hasher_.EndFile());
    for (auto& [path, digest] : *options_.digests) {
      if (!hasher_.digests().contains(path)) {  // a file without tensors
        TRY(reader_.Open(path));
        TRY(hasher_.Add(path, 0, {}));
        TRY(hasher_.EndFile());
      }
      digest = hasher_.digests().at(path);
    }
    return {};
  }

  const std::span<const ScanTarget> targets_;
  const ScanOptions& options_;
  const StepProgress& progress_;
  ThreadPool pool_;
  ShardReader reader_;
  ShardHasher hasher_;
  std::vector<Merger> mergers_;
  std::span<const Piece> held_;  // that wait to be hashed, in the half that is not this turn's
  size_t turn_ = 0;
};

}  // namespace

Result<std::vector<TensorScan>> ScanTensors(std::span<const ScanTarget> targets,
                                            const ScanOptions& options,
                                            const StepProgress& progress) {
  return Scanner(targets, options, progress).Run();
}

}  // namespace hallmark
