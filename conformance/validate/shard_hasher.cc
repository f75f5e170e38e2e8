// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/shard_hasher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr uint64_t kBlock = uint64_t{1} << 16;

}  // namespace

Status ShardHasher::Add(const std::string& path, uint64_t offset,
                        std::span<const std::byte> bytes) {
  if (path != path_) {
    TRY(EndFile());
    CHECK(!digests_.contains(path));
    path_ = path;
    at_ = 0;
    hash_ = Sha256();
  }
  CHECK(offset >= at_);
  TRY(ReadUpTo(offset));
  hash_.Update(bytes);
  at_ += bytes.size();
  return {};
}

Status ShardHasher::EndFile() {
  if (path_.empty()) return {};
  TRY(ReadUpTo(TRY(reader_->Size(path_))));
  digests_[std::exchange(path_, "")] = Hex(hash_.Finish());
  return {};
}

Status ShardHasher::ReadUpTo(uint64_t offset) {
  std::vector<std::byte> block;
  while (at_ < offset) {
    block.resize(std::min(kBlock, offset - at_));
    TRY(reader_->Read(path_, at_, block));
    hash_.Update(block);
    at_ += block.size();
  }
  return {};
}

}  // namespace hallmark
