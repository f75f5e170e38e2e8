// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/mapped_equals_device.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/prompt_runs.h"
#include "engine/backend/cpu/widen.h"
#include "engine/backend/device_checks.h"
#include "engine/format/inventory.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

// Rows at either end that the table in device memory holds, at most: a card whose own table is
// mapped need not have room for all of it.
constexpr int64_t kEnd = 128;

Result<std::vector<float>> EmbedOnHost(Backend& backend, const EmbeddingTable& table,
                                       std::span<const int32_t> ids) {
  const int64_t rows = static_cast<int64_t>(ids.size());
  std::vector<float> values(static_cast<size_t>(rows * table.cols));
  const Buffer out = TRY(backend.Allocate(values.size() * sizeof(float)));
  TRY(backend.Fill(out.data(), 0xFF, out.bytes()));
  TRY(backend.Embed(table, ids, {out.floats(), rows, table.cols}));
  TRY(backend.Download(values.data(), out.data(), out.bytes()));
  return values;
}

// The first and the last rows of a table.
struct Ends {
  std::vector<std::byte> bytes;
  TensorView view;

  Ends(const TensorView& table, int64_t rows) {
    const size_t part =
        table.bytes.size() / static_cast<size_t>(table.shape[0]) * static_cast<size_t>(rows);
    bytes.assign(table.bytes.begin(), table.bytes.begin() + static_cast<int64_t>(part));
    bytes.insert(bytes.end(), table.bytes.end() - static_cast<int64_t>(part), table.bytes.end());
    view = table;
    view.shape[0] = 2 * rows;
    view.bytes = bytes;
  }
};

class Tables {
 public:
  Tables(const Session& session, DeviceChecks& checks)
      : session_(session), checks_(checks), table_(session.inventory().embedding) {}

  Result<Row> Compare() {
    const int64_t entries = table_.shape[0];
    const auto end = static_cast<int32_t>(std::min(kEnd, entries / 2));
    const int32_t last = static_cast<int32_t>(entries) - 1;
    std::vector<int32_t> ids = {0, last, 1, last - 1, last, 0};
    for (const int32_t id : BuiltInPrompt(entries)) ids.push_back(id);
    TRY(Through(*session_.model().backend, *session_.model().embedding, ids, ids, "the session's"));
    {
      const auto beside = TRY(checks_.MakeBeside(TablePlacement::kMapped));
      const auto mapped = TRY(beside->LoadTable(table_));
      TRY(Through(*beside, *mapped, ids, ids, "in host memory"));
    }
    const auto beside = TRY(checks_.MakeBeside(TablePlacement::kDevice));
    const Ends ends(table_, end);
    const auto device = TRY(beside->LoadTable(ends.view));
    std::vector<int32_t> whole, part;
    for (int32_t i = 0; i < end; ++i) {
      whole.insert(whole.end(), {i, last - i});
      part.insert(part.end(), {i, 2 * end - 1 - i});
    }
    TRY(Through(*beside, *device, part, whole, "in device memory"));
    row_.Count("tables", 3);
    return row_.Finish();
  }

 private:
  // Rows `ids` of `table` against the rows `truth` of the checkpoint: one, two and all at once.
  Status Through(Backend& backend, const EmbeddingTable& table, std::span<const int32_t> ids,
                 std::span<const int32_t> truth, const std::string& where) {
    const size_t cols = static_cast<size_t>(table.cols);
    for (const size_t count : {size_t{1}, size_t{2}, ids.size()}) {
      std::vector<float> expected(count * cols);
      for (size_t i = 0; i < count; ++i) {
        TRY(WidenToFloat(table_, truth[i] * table.cols, table.cols, expected.data() + i * cols));
      }
      const std::vector<float> actual = TRY(EmbedOnHost(backend, table, ids.first(count)));
      row_.Compare<float>(expected, actual, std::to_string(count) + " rows of a table " + where);
      row_.Count("rows", count);
    }
    return {};
  }

  const Session& session_;
  DeviceChecks& checks_;
  const TensorView& table_;
  BitsRow row_;
};

}  // namespace

Status AddMappedEqualsDeviceCases(const CaseSubject& subject, CaseRegistry& registry) {
  return registry.Add("mapped-equals-device", "rows", [subject]() -> Result<Row> {
    const Session& session = *subject.session;
    DeviceChecks* const checks = session.model().backend->device_checks();
    if (checks == nullptr) {
      return Fail(Code::kUnsupported,
                  "the backend " + session.backend_name() + " has one place for tables");
    }
    return Tables(session, *checks).Compare();
  });
}

}  // namespace hallmark
