// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/calendar.h"

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>

namespace hallmark::verify {
namespace {

// Digits alone, in [0, most].
std::optional<int> Number(std::string_view text, int most) {
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
  }
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (value > most) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> ParseDate(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = Number(text.substr(0, 4), 9999);
  const auto month = Number(text.substr(5, 2), 12);
  const auto day = Number(text.substr(8, 2), 31);
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::optional<int64_t> ParseUtc(std::string_view text) {
  if (text.size() != 20 || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
      text[19] != 'Z') {
    return std::nullopt;
  }
  const auto days = ParseDate(text.substr(0, 10));
  const auto hours = Number(text.substr(11, 2), 23);
  const auto minutes = Number(text.substr(14, 2), 59);
  const auto seconds = Number(text.substr(17, 2), 60);  // 60: a leap second
  if (!days || !hours || !minutes || !seconds) return std::nullopt;
  return *days * 86400 + *hours * 3600 + *minutes * 60 + *seconds;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

}  // namespace hallmark::verify
