// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "tools/hallmark/command.h"

namespace hallmark {

void AddEngineFlags(CLI::App& command, EngineFlags& flags) {
  command
      .add_option("--kv", flags.kv,
                  "Type of stored keys and values: bf16, or fp8 for half the memory [bf16]")
      ->type_name("TYPE");
  command.add_option("--device", flags.device, "Where to run: cpu, or cuda if built with it [cpu]")
      ->type_name("NAME");
  command
      .add_option("--embedding", flags.embedding,
                  "On cuda, where the embedding lies: device, or mapped for page-locked host "
                  "memory [device]")
      ->type_name("PLACE");
  AddTextFlag(command, "--vram", flags.vram,
              "On cuda, device memory to fit into, such as 24GiB or 24000MiB, as hallmark plan "
              "counts it [what is free]")
      ->type_name("SIZE");
  command.add_option("--threads", flags.threads, "CPU threads; 0: as many as it may use here [0]")
      ->type_name("N");
  command
      .add_option(
          "--tier", flags.tier,
          "CPU instructions: scalar, avx2, avx512 or avx512fp16 [the best this machine has]")
      ->type_name("NAME");
}

void AddDraftFlags(CLI::App& command, DraftFlags& flags) {
  AddTextFlag(command, "--drafter", flags.drafter,
              "Folder of a DFlash or DFlash2 drafter made for this checkpoint")
      ->type_name("FOLDER");
  AddTextFlag(command, "--drafter-weights", flags.weights,
              "stored: as in its files; 4bit: plain matrices quantized as they are loaded [stored]")
      ->type_name("HOW");
  AddTextFlag(command, "--draft-vocab", flags.vocabulary,
              "Ids it may propose, as spans first:past-the-last, each widened to whole blocks of "
              "128 [all]")
      ->type_name("A:B,C:D");
}

CLI::Option* AddTextFlag(CLI::App& command, const std::string& name,
                         std::optional<std::string>& value, const std::string& description) {
  return command.add_option_function<std::string>(
      name, [&value](const std::string& text) { value = text; }, description);
}

}  // namespace hallmark
