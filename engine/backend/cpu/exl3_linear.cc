// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/exl3_linear.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cpu/panels.h"
#include "engine/backend/cpu/widen.h"
#include "engine/backend/exl3_codec.h"
#include "engine/base/check.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr int kBlockTiles = kExl3Block / kTileSide;
constexpr int kMaxPanelTiles = 2 * kBlockTiles;
// A decoder may read this far past its packed panel.
constexpr size_t kReadAhead = 64;

// [count] fp32 from F16 values or from packed sign words.
Result<std::vector<float>> LoadScale(const TensorView& tensor, bool packed, int64_t count) {
  std::vector<float> scale(static_cast<size_t>(count));
  if (!packed) {
    CHECK(tensor.elements() == count);
    TRY(WidenToFloat(tensor, 0, count, scale.data()));
    return scale;
  }
  CHECK(tensor.elements() * 16 == count);
  for (size_t i = 0; i < scale.size(); ++i) {
    uint16_t word;
    std::memcpy(&word, tensor.bytes.data() + i / 16 * sizeof(word), sizeof(word));
    scale[i] = ((word >> (i % 16)) & 1) != 0 ? -1.0f : 1.0f;
  }
  return scale;
}

// Gives the tiles of panels one after the other, out of bytes of any alignment.
class TileReader {
 public:
  explicit TileReader(const Exl3Group& group) : group_(group) {
    CHECK(group.k % kExl3Block == 0 && group.n % kExl3Block == 0);
    const int64_t tile_bytes = 2 * TileWords(group.k2);
    CHECK(group.trellis.bytes.size() ==
          static_cast<size_t>(group.k / kTileSide * (group.n / kTileSide) * tile_bytes));
    for (int i = 0; i < kMaxPanelTiles; ++i) pointers_[i] = words_[i];
  }

  // Packs the panel of `columns` outputs from column * columns, in 128-block `block`.
  void Pack(const LinearLoops& loops, int64_t block, int64_t panel, uint8_t* packed) {
    const int64_t across = loops.panel_columns / kTileSide;
    const size_t bytes = sizeof(uint16_t) * static_cast<size_t>(TileWords(group_.k2));
    for (int64_t i = 0; i < kBlockTiles * across; ++i) {
      const int64_t row = block * kBlockTiles + i / across;
      const int64_t tile = row * (group_.n / kTileSide) + panel * across + i % across;
      std::memcpy(words_[i], group_.trellis.bytes.data() + static_cast<size_t>(tile) * bytes,
                  bytes);
    }
    loops.pack_panel(pointers_, group_.k2, packed);
  }

 private:
  const Exl3Group& group_;
  uint16_t words_[kMaxPanelTiles][kMaxTileWords];
  const uint16_t* pointers_[kMaxPanelTiles];
};

size_t PanelBytes(const LinearLoops& loops, int k2) {
  return static_cast<size_t>(kExl3Block * loops.panel_columns * k2 / 16);
}

DecodePanelLoop DecoderOf(const LinearLoops& loops, const Exl3Group& group) {
  const DecodePanelLoop decode = loops.exl3_decoder(static_cast<int>(group.codebook), group.k2);
  CHECK(decode != nullptr);
  return decode;
}

// The fp16 bits of a decoded value; NaN, which no codebook holds, if a decoder left it unrounded.
uint16_t ExactHalf(float value) {
  const uint16_t half = FloatToHalf(value);
  return HalfToFloat(half) == value ? half : uint16_t{0x7E00};
}

class Exl3CpuLinear : public CpuLinear {
 public:
  static Result<std::unique_ptr<CpuLinear>> Load(const LinearSource& source, CpuTier tier) {
    const Exl3Group& group = std::get<Exl3Group>(source.weights);
    CHECK(source.in_features <= group.k && source.out_features <= group.n);
    auto linear = std::unique_ptr<Exl3CpuLinear>(new Exl3CpuLinear);
    linear->in_features = source.in_features;
    linear->out_features = source.out_features;
    linear->name_ = group.name;
    linear->suh_ = TRY(LoadScale(group.input_scale, group.input_packed, group.k));
    linear->svh_ = TRY(LoadScale(group.output_scale, group.output_packed, group.n));
    if (group.bias) linear->bias_ = TRY(LoadScale(*group.bias, false, group.n));
    const LinearLoops& loops = LinearLoopsOf(tier);
    const DecodePanelLoop decode = DecoderOf(loops, group);
    const size_t packed_bytes = PanelBytes(loops, group.k2);
    // The definition decodes bit by bit, far too slowly to do it in every call: the scalar tier
    // does it once, here, and keeps the values.
    const bool keep_values = tier == CpuTier::kScalar;
    linear->panels_ = TRY(Panels::Make(
        tier, group.k, group.n,
        keep_values ? static_cast<size_t>(kExl3Block * loops.panel_columns) * sizeof(float)
                    : packed_bytes,
        keep_values ? loops.plain_decoder(PlainType::kF32) : decode, loops.add_exact));
    std::vector<uint8_t> packed(packed_bytes + kReadAhead);
    TileReader reader(group);
    for (int64_t panel = 0; panel < linear->panels_.panels(); ++panel) {
      for (int64_t block = 0; block < linear->panels_.blocks(); ++block) {
        uint8_t* place = linear->panels_.at(block, panel);
        reader.Pack(loops, block, panel, keep_values ? packed.data() : place);
        if (keep_values) decode(packed.data(), reinterpret_cast<float*>(place));
      }
    }
    return std::unique_ptr<CpuLinear>(std::move(linear));
  }

  size_t bytes() const override {
    return panels_.bytes() + sizeof(float) * (suh_.size() + svh_.size() + bias_.size());
  }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    ThreadPool& pool) const override {
    const std::vector<ColumnStrip> strips = StripsOf(spans, out_features);
    CHECK(x.cols == in_features && y.cols == WidthOf(spans) && x.rows == y.rows);
    for (int64_t first = 0; first < x.rows; first += kRowGroup) {
      const int64_t rows = std::min(kRowGroup, x.rows - first);
      TRY(panels_.Reserve(rows, pool));
      if (!RotateInputs(x.data + first * x.cols, rows, pool)) {
        return Fail(Code::kOutOfRange, "a rotated input is not finite in fp16", {.tensor = name_});
      }
      float* out = y.data + first * y.cols;
      pool.ParallelFor(static_cast<int64_t>(strips.size()), [&](int64_t i, int member) {
        const ColumnStrip& strip = strips[static_cast<size_t>(i)];
        float* sum = Panels::SumScratch(pool, member);
        panels_.Sum(Panels::Inputs(pool), rows, strip.strip, Panels::PanelScratch(pool, member),
                    sum);
        RotateOutputs(sum, strip, {out, rows, y.cols});
      });
    }
    return {};
  }

 private:
  Exl3CpuLinear() = default;

  // Inputs(pool) <- xh of `rows` rows. False if one is not finite in fp16.
  bool RotateInputs(const float* x, int64_t rows, ThreadPool& pool) const {
    // Below this many values waking another thread costs more than it saves.
    constexpr int64_t kWorthSharing = 1 << 14;
    std::atomic<bool> finite{true};
    const auto rotate = [&](int64_t row) {
      if (!RotateRow(x + row * in_features, row, rows, Panels::Inputs(pool))) {
        finite.store(false, std::memory_order_relaxed);
      }
    };
    if (rows * in_features < kWorthSharing) {
      for (int64_t row = 0; row < rows; ++row) rotate(row);
    } else {
      pool.ParallelFor(rows, rotate);
    }
    return finite.load(std::memory_order_relaxed);
  }

  bool RotateRow(const float* x, int64_t row, int64_t rows, float* inputs) const {
    bool finite = true;
    for (int64_t block = 0; block < panels_.blocks(); ++block) {
      const int64_t start = block * kExl3Block;
      const float* source = x + start;
      float padded[kExl3Block];
      if (start + kExl3Block > in_features) {
        const int64_t rest = std::max<int64_t>(0, in_features - start);
        std::copy_n(source, rest, padded);
        std::fill(padded + rest, padded + kExl3Block, 0.0f);
        source = padded;
      }
      finite &= panels_.loops().rotate_input(source, suh_.data() + start,
                                             inputs + (block * rows + row) * kExl3Block);
    }
    return finite;
  }

  void RotateOutputs(const float* sum, const ColumnStrip& strip, Rows y) const {
    const int64_t start = strip.strip * kExl3Block;
    const float* bias = bias_.empty() ? nullptr : bias_.data() + start;
    for (int64_t row = 0; row < y.rows; ++row) {
      float* out = y.data + row * y.cols + strip.out;
      float padded[kExl3Block];
      float* target = strip.count == kExl3Block ? out : padded;
      panels_.loops().rotate_output(sum + row * kExl3Block, svh_.data() + start, bias, target);
      if (target != out) std::copy_n(padded, strip.count, out);
    }
  }

  std::string name_;
  Panels panels_;
  std::vector<float> suh_;   // [k]
  std::vector<float> svh_;   // [n]
  std::vector<float> bias_;  // [n] or empty
};

}  // namespace

Result<std::unique_ptr<CpuLinear>> LoadExl3Linear(const LinearSource& source, CpuTier tier) {
  return Exl3CpuLinear::Load(source, tier);
}

std::vector<uint16_t> DecodeExl3(const Exl3Group& group, CpuTier tier) {
  const LinearLoops& loops = LinearLoopsOf(tier);
  const DecodePanelLoop decode = DecoderOf(loops, group);
  const int64_t columns = loops.panel_columns;
  const size_t panel_bytes = PanelBytes(loops, group.k2);
  std::vector<uint8_t> packed(panel_bytes + kReadAhead);
  std::vector<float> panel(static_cast<size_t>(kExl3Block * columns));
  std::vector<float> natural(panel.size());  // [128 inputs, columns]
  std::vector<uint16_t> values(static_cast<size_t>(group.k * group.n));
  TileReader reader(group);
  for (int64_t block = 0; block < group.k / kExl3Block; ++block) {
    for (int64_t i = 0; i < group.n / columns; ++i) {
      reader.Pack(loops, block, i, packed.data());
      decode(packed.data(), panel.data());
      loops.unpack_panel(panel.data(), natural.data());
      for (int64_t row = 0; row < kExl3Block; ++row) {
        std::transform(natural.data() + row * columns, natural.data() + (row + 1) * columns,
                       values.data() + (block * kExl3Block + row) * group.n + i * columns,
                       &ExactHalf);
      }
    }
  }
  return values;
}

}  // namespace hallmark
