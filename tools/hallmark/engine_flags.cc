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
  command.add_option("--threads", flags.threads, "CPU threads; 0: as many as it may use here [0]")
      ->type_name("N");
  command
      .add_option(
          "--tier", flags.tier,
          "CPU instructions: scalar, avx2, avx512 or avx512fp16 [the best this machine has]")
      ->type_name("NAME");
}

}  // namespace hallmark
