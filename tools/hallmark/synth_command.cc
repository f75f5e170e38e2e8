// SPDX-License-Identifier: Apache-2.0
// hallmark synth: a random checkpoint of a public geometry, for measuring and planning.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "engine/format/synth_model.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/plan_text.h"
#include "tools/hallmark/report.h"
#include "tools/hallmark/synth_files.h"

namespace hallmark {
namespace {

namespace fs = std::filesystem;

struct SynthFlags {
  std::string geometry;
  std::string bits = "4";
  std::string head_bits = "6";
  std::string codebook = "mul1";
  std::string seed;
  std::string out;
  std::optional<std::string> layers, vocab, drafter, drafter_weights;
  bool headers_only = false;
};

tl::unexpected<Error> BadValue(const std::string& found, const std::string& expected,
                               const char* flag) {
  return Fail(Code::kOutOfRange, "found \"" + found + "\", expected " + expected, {.flag = flag});
}

Result<SynthModelOptions> ParseModel(const SynthFlags& flags) {
  SynthModelOptions options;
  const SynthGeometry* geometry = FindSynthGeometry(flags.geometry);
  if (geometry == nullptr) {
    std::string names;
    for (const SynthGeometry& known : SynthGeometries()) {
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    return BadValue(flags.geometry, "one of " + names, "--geometry");
  }
  options.geometry = *geometry;
  if (flags.layers) {
    options.geometry.layers = TRY(ParseInteger(*flags.layers, "--layers", 1, 1024));
  }
  if (flags.vocab) {
    options.geometry.vocab = TRY(ParseInteger(*flags.vocab, "--vocab", 256, int64_t{1} << 24));
  }
  options.bits = TRY(ParseFraction(flags.bits, "--bits"));
  if (options.bits < 1 || options.bits > 8) return BadValue(flags.bits, "1 to 8", "--bits");
  options.head_bits = static_cast<int>(TRY(ParseInteger(flags.head_bits, "--head-bits", 1, 16)));
  if (options.head_bits > 8 && options.head_bits != 16) {
    return BadValue(flags.head_bits, "1 to 8, or 16 for a plain head", "--head-bits");
  }
  for (const Codebook codebook : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    if (flags.codebook != CodebookName(codebook)) continue;
    options.codebook = codebook;
    return options;
  }
  return BadValue(flags.codebook, "mul1, mcg or 3inst", "--codebook");
}

// Absent: no drafter.
Result<std::optional<SynthDrafterWeights>> ParseDrafter(const SynthFlags& flags,
                                                        const SynthGeometry& geometry) {
  if (!flags.drafter) {
    if (!flags.drafter_weights) return std::nullopt;
    return Fail(Code::kOutOfRange, "there is no drafter that it could apply to, expected --drafter",
                {.flag = "--drafter-weights"});
  }
  if (*flags.drafter != "dflash2") return BadValue(*flags.drafter, "dflash2", "--drafter");
  if (geometry.layers < 2) {
    return Fail(Code::kOutOfRange, "found 1 layer, expected 2 or more for a drafter",
                {.flag = "--layers"});
  }
  const std::string weights = flags.drafter_weights.value_or("bf16");
  if (weights == "bf16") return SynthDrafterWeights::kBf16;
  if (weights == "4bit") return SynthDrafterWeights::kAffine4;
  return BadValue(weights, "bf16 or 4bit", "--drafter-weights");
}

// A folder that is gone again unless it is kept under its final name.
class NewFolder {
 public:
  static Result<NewFolder> Create(const std::string& out) {
    std::error_code error;
    // No entry may be there, except an empty folder, which the new one replaces.
    if (out.empty()) return BadValue(out, "the name of a folder to make", "--out");
    if (fs::exists(fs::symlink_status(out, error)) &&
        !(fs::is_directory(fs::symlink_status(out, error)) && fs::is_empty(out, error))) {
      return Fail(Code::kOutOfRange, "there is something already, expected a new folder's name",
                  {.file = out, .flag = "--out"});
    }
    std::string base = out;
    while (base.size() > 1 && base.ends_with('/')) base.pop_back();
    NewFolder folder;
    folder.out_ = base;
    folder.path_ = base + ".part-" + std::to_string(::getpid());
    if (!fs::create_directory(folder.path_, error)) {
      const std::string why = error ? error.message() : "it is there already";
      folder.path_.clear();
      return Fail(Code::kIo, "cannot make a folder beside it: " + why, {.file = out});
    }
    return folder;
  }
  NewFolder(NewFolder&& other) noexcept { *this = std::move(other); }
  NewFolder& operator=(NewFolder&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(out_, other.out_);
    return *this;
  }
  ~NewFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }
  Status Keep() {
    std::error_code error;
    fs::rename(path_, out_, error);
    if (error) {
      return Fail(Code::kIo, "cannot give the folder its name: " + error.message(), {.file = out_});
    }
    path_.clear();
    return {};
  }

 private:
  NewFolder() = default;
  std::string path_, out_;
};

Result<int> Run(const SynthFlags& flags) {
  const SynthModelOptions options = TRY(ParseModel(flags));
  const auto drafter_weights = TRY(ParseDrafter(flags, options.geometry));
  const uint64_t seed = TRY(ParseSeed(flags.seed, "--seed"));
  NewFolder folder = TRY(NewFolder::Create(flags.out));

  Progress progress;
  const auto write = [&](const SynthCheckpoint& checkpoint, const std::string& name,
                         const std::string& path) -> Status {
    const uint64_t total = DataBytes(checkpoint);
    uint64_t shown = 0;
    const auto show = [&](uint64_t done) {
      constexpr uint64_t kStep = uint64_t{64} << 20;
      if (done < shown + kStep) return;
      shown = done;
      progress.Show(fmt::format("{}: {} of {}", name, ByteText(done), ByteText(total)));
    };
    return WriteSynthFiles(checkpoint, path,
                           {.seed = seed, .headers_only = flags.headers_only, .progress = show});
  };
  const SynthCheckpoint model = TRY(MakeSynthModel(options));
  TRY(write(model, std::string(options.geometry.name), folder.path()));
  std::string text = fmt::format("{}: {} layers, {:.4g} bits a weight, {}\n", flags.out,
                                 options.geometry.layers, model.bits, ByteText(DataBytes(model)));
  if (drafter_weights) {
    const SynthCheckpoint drafter = TRY(MakeSynthDrafter(options.geometry, *drafter_weights));
    const std::string name = "/" + *flags.drafter;
    std::error_code error;
    fs::create_directory(folder.path() + name, error);
    if (error) return Fail(Code::kIo, "cannot make the folder", {.file = folder.path() + name});
    TRY(write(drafter, *flags.drafter, folder.path() + name));
    text += fmt::format("{}{}: its drafter, {}\n", flags.out, name, ByteText(DataBytes(drafter)));
  }
  TRY(folder.Keep());
  progress.Clear();
  return PrintText(text);
}

}  // namespace

void AddSynthCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App* command = program.add_subcommand(
      "synth", "Write a random checkpoint of a public geometry, for measuring and planning");
  std::string names;
  for (const SynthGeometry& known : SynthGeometries()) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  command->add_option("--geometry", flags->geometry, "One of " + names)
      ->required()
      ->type_name("NAME");
  command->add_option("--seed", flags->seed, "Of every random bit: the same flags, the same bytes")
      ->required()
      ->type_name("N");
  command->add_option("--out", flags->out, "The folder to make; it must not be there, or be empty")
      ->required()
      ->type_name("DIR");
  AddTextFlag(*command, "--layers", flags->layers,
              "Layers, every fourth attention [the geometry's]")
      ->type_name("N");
  AddTextFlag(*command, "--vocab", flags->vocab, "Ids [248320]")->type_name("N");
  command
      ->add_option("--bits", flags->bits,
                   "Bits a weight of the layers, on average; a fraction mixes two widths [4]")
      ->type_name("B");
  command->add_option("--head-bits", flags->head_bits, "Of the head; 16: a plain one [6]")
      ->type_name("B");
  command->add_option("--codebook", flags->codebook, "mul1, mcg or 3inst [mul1]")
      ->type_name("NAME");
  AddTextFlag(*command, "--drafter", flags->drafter,
              "dflash2: a drafter for it too, in the folder DIR/dflash2")
      ->type_name("KIND");
  AddTextFlag(*command, "--drafter-weights", flags->drafter_weights,
              "bf16, or 4bit: affine, groups of 64 [bf16]")
      ->type_name("HOW");
  command->add_flag("--headers-only", flags->headers_only,
                    "Holes instead of data: files of the right size that take no room, to plan by");
  command->footer(
      "The weights have learned nothing; activations stay finite and logits spread. Linears that\n"
      "share an input have one width. With a fraction of bits, each such group in turn takes the\n"
      "width that keeps the average so far nearest. The folder appears when all of it is "
      "written.\n\n"
      "Examples:\n"
      "  hallmark synth --geometry qwen3.8-27b --bits 3.5 --drafter dflash2 --seed 1 --out big\n"
      "  hallmark synth --geometry qwen3.5-0.8b --layers 4 --vocab 4096 --seed 1 --out small\n"
      "  hallmark synth --geometry qwen3.8-27b --bits 3.5 --headers-only --seed 1 --out headers");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

}  // namespace hallmark
