// SPDX-License-Identifier: Apache-2.0
#include "engine/base/error_json.h"

#include <nlohmann/json.hpp>

namespace hallmark {

std::string Utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json LocatorJson(const Locator& where) {
  Json json = Json::object();
  if (!where.file.empty()) json["file"] = Utf8(where.file);
  if (where.byte) json["byte"] = *where.byte;
  if (!where.pointer.empty()) json["pointer"] = Utf8(where.pointer);
  if (!where.tensor.empty()) json["tensor"] = Utf8(where.tensor);
  if (!where.launcher.empty()) json["launcher"] = Utf8(where.launcher);
  if (!where.flag.empty()) json["flag"] = Utf8(where.flag);
  return json;
}

}  // namespace hallmark
