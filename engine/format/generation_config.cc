// SPDX-License-Identifier: Apache-2.0
#include "engine/format/generation_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/format/json_view.h"

namespace hallmark {
namespace {

void Add(int64_t id, Locator where, StopIds* ids) {
  auto at = std::lower_bound(ids->ids.begin(), ids->ids.end(), id,
                             [](const StopId& stop, int64_t wanted) { return stop.id < wanted; });
  if (at == ids->ids.end() || at->id != id) at = ids->ids.insert(at, StopId{.id = id});
  at->stated_at.push_back(std::move(where));
}

Status AddFrom(const JsonView& view, int64_t vocab, StopIds* ids) {
  constexpr std::string_view kKey = "eos_token_id";
  const Json* value = view.Raw(kKey);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    Add(TRY(view.NeedInt(kKey, 0, vocab - 1)), view.At(kKey), ids);
    return {};
  }
  const auto list = TRY(view.Ints(kKey, 0, vocab - 1));
  for (size_t i = 0; i < list->size(); ++i) {
    Locator where = view.At(kKey);
    where.pointer += "/" + std::to_string(i);
    Add((*list)[i], std::move(where), ids);
  }
  return {};
}

}  // namespace

bool StopIds::Contains(int64_t id) const {
  return std::any_of(ids.begin(), ids.end(), [id](const StopId& stop) { return stop.id == id; });
}

std::vector<int64_t> StopIds::values() const {
  std::vector<int64_t> values;
  for (const StopId& stop : ids) values.push_back(stop.id);
  return values;
}

Status AddStopIds(const Json& config, const std::string& file, int64_t vocab, StopIds* ids) {
  const JsonView root = TRY(JsonView::Of(config, file));
  TRY(AddFrom(root, vocab, ids));
  const auto text = TRY(root.Object("text_config"));
  if (text) TRY(AddFrom(*text, vocab, ids));
  return {};
}

}  // namespace hallmark
