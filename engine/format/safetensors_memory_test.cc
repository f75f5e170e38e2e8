// SPDX-License-Identifier: Apache-2.0
// Refusing a header allocates less than the file's size plus 1 MB, measured by counting every byte
// that operator new hands out and the peak that is held at once.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "engine/format/safetensors.h"

namespace {
size_t g_live = 0;
size_t g_peak = 0;
size_t g_total = 0;

void* Take(size_t size) {
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) std::abort();
  g_live += malloc_usable_size(block);
  g_total += malloc_usable_size(block);
  if (g_live > g_peak) g_peak = g_live;
  return block;
}
void Give(void* block) {
  if (block != nullptr) g_live -= malloc_usable_size(block);
  std::free(block);
}
}  // namespace

void* operator new(size_t size) { return Take(size); }
void* operator new[](size_t size) { return Take(size); }
void operator delete(void* block) noexcept { Give(block); }
void operator delete[](void* block) noexcept { Give(block); }
void operator delete(void* block, size_t) noexcept { Give(block); }
void operator delete[](void* block, size_t) noexcept { Give(block); }

namespace hallmark {
namespace {

constexpr size_t kSlack = 1 << 20;

std::string FileOf(const std::string& header) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  }
  return text + header;
}

// Expects a refusal whose allocations, all together, stay below the bound.
void ExpectCheapRefusal(const char* what, const std::string& file) {
  const size_t live = g_live;
  const size_t total = g_total;
  g_peak = g_live;
  const auto table = ParseSafetensors(std::as_bytes(std::span(file)), "x.safetensors");
  const size_t peak = g_peak - live;
  const size_t taken = g_total - total;
  EXPECT_FALSE(table.has_value()) << what;
  EXPECT_LT(peak, file.size() + kSlack) << what;
  EXPECT_LT(taken, file.size() + kSlack) << what;
}

std::string Repeat(const std::string& piece, size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(SafetensorsMemory, TheCounterCounts) {
  const size_t before = g_total;
  const std::string text(100000, 'x');
  EXPECT_GE(g_total - before, text.size());
}

TEST(SafetensorsMemory, RefusalsAllocateLessThanTheFileAndAMegabyte) {
  ExpectCheapRefusal("length beyond the file", std::string("\xff\xff\xff\x05\0\0\0\0{}", 10));
  ExpectCheapRefusal("length beyond the cap", std::string("\xff\xff\xff\xff\0\0\0\0{}", 10));
  ExpectCheapRefusal("deep lists", FileOf("{\"a\":" + std::string(4'000'000, '[')));
  ExpectCheapRefusal("deep objects", FileOf(Repeat("{\"a\":", 1'000'000)));
  ExpectCheapRefusal("a name without end", FileOf("{\"" + std::string(4'000'000, 'n')));
  ExpectCheapRefusal("a long name with a fault",
                     FileOf("{\"" + std::string(4'000'000, 'n') + "\":{\"dtype\":\"F4\"}}"));
  ExpectCheapRefusal("a long unknown dtype",
                     FileOf("{\"a\":{\"dtype\":\"" + std::string(4'000'000, 'n') + "\"}}"));
  ExpectCheapRefusal("a long shape",
                     FileOf("{\"a\":{\"shape\":[" + Repeat("1,", 2'000'000) + "-1]}}"));
  ExpectCheapRefusal(
      "two long equal names",
      FileOf("{" +
             Repeat("\"" + std::string(2'000'000, 'n') +
                        "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
                    2) +
             "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"));

  std::string tensors = "{";
  std::string keys = "{\"__metadata__\":{";
  for (int i = 0; i < 50'000; ++i) {
    const std::string name = std::to_string(i);
    tensors += "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},";
    keys += "\"" + name + "\":\"\",";
  }
  ExpectCheapRefusal(
      "many tensors on one byte",
      FileOf(tensors + "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}"));
  ExpectCheapRefusal("many tensors, the last broken", FileOf(tensors + "\"b\":{}}"));
  ExpectCheapRefusal("many metadata keys, one twice", FileOf(keys + "\"7\":\"\"}}"));
}

}  // namespace
}  // namespace hallmark
