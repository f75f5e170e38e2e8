// SPDX-License-Identifier: Apache-2.0
// What the engine's reader says of many safetensors files: paths on standard input, each ended by
// NUL; one line a file on standard output, in the same order, "accept" or "refuse" and why. A file
// that cannot be read has no verdict: it ends the program, with exit code 1.
#include <cstdio>
#include <iostream>
#include <string>

#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/base/result.h"
#include "engine/format/safetensors.h"

namespace {

std::string OneLine(const hallmark::Error& error) {
  return hallmark::Printable(error.ToString(), 500);
}

// The verdict as a line, or an error where there is none.
hallmark::Result<std::string> Judge(const std::string& path) {
  const auto file = hallmark::MappedFile::Open(path);
  if (!file.has_value()) return hallmark::Fail(file.error());
  const auto table = hallmark::ParseSafetensors(file->bytes(), path);
  if (const auto intact = file->Intact(); !intact.has_value()) {
    return hallmark::Fail(intact.error());
  }
  return table.has_value() ? "accept" : "refuse " + OneLine(table.error());
}

}  // namespace

int main() {
  std::string path;
  while (std::getline(std::cin, path, '\0')) {
    const auto verdict = Judge(path);
    if (!verdict.has_value()) {
      std::fprintf(stderr, "%s\n", OneLine(verdict.error()).c_str());
      return 1;
    }
    std::puts(verdict->c_str());
    std::fflush(stdout);  // so that a crash tells at which file
  }
  return 0;
}
