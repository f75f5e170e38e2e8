// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/pointer_tables.h"

#include <algorithm>

namespace hallmark {

Result<void*> PointerTables::Place(std::span<const void* const> pointers) {
  if (pointers.empty()) return nullptr;
  if (tables_.size() >= kMaxTables && !tables_.contains(pointers[0])) tables_.clear();
  Table& table = tables_[pointers[0]];
  const bool known = table.pointers.size() >= pointers.size() &&
                     std::equal(pointers.begin(), pointers.end(), table.pointers.begin());
  if (known) return table.memory.data();
  table.pointers.clear();  // until the new ones are there
  if (table.memory.bytes() < pointers.size_bytes()) {
    // Twice the room: contexts grow page by page.
    table.memory = TRY(arena_.Allocate(2 * pointers.size_bytes()));
  }
  TRY(staging_.Send(table.memory.data(), pointers.data(), pointers.size_bytes()));
  table.pointers.assign(pointers.begin(), pointers.end());
  return table.memory.data();
}

}  // namespace hallmark
