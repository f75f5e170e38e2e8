// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/draft_context.h"

#include <algorithm>

#include "engine/draft/drafter.h"

namespace hallmark {
namespace {

size_t PageFloats(const Drafter& drafter, int64_t rows) {
  const int64_t layers = static_cast<int64_t>(drafter.config().layers.size());
  return static_cast<size_t>(layers * 2 * rows * drafter.config().kv_width());
}

}  // namespace

Result<DraftContext> DraftContext::Create(const Drafter& drafter) {
  DraftContext context;
  context.drafter_ = &drafter;
  return context;
}

Result<DraftContext> DraftContext::Fork() const {
  DraftContext fork;
  fork.drafter_ = drafter_;
  fork.length_ = length_;
  fork.fused_ = fused_;
  fork.first_page_ = first_page_;
  fork.pages_ = pages_;
  if (pending() > 0) {
    Backend& backend = drafter_->backend();
    fork.taps_ = TRY(backend.Allocate(taps_.bytes()));
    const size_t used = static_cast<size_t>(pending() * drafter_->tap_width()) * sizeof(float);
    TRY(backend.Copy(fork.taps_.data(), taps_.data(), used));
  }
  return fork;
}

size_t DraftContext::bytes() const {
  size_t bytes = taps_.bytes();
  for (const Page& page : pages_) bytes += page->bytes();
  return bytes;
}

void DraftContext::DropBefore(int64_t first) {
  const int64_t page = std::max(first_page_, first / kPageRows);
  const int64_t gone = std::min(page - first_page_, static_cast<int64_t>(pages_.size()));
  pages_.erase(pages_.begin(), pages_.begin() + gone);
  // With pages left the ones before them are gone; with none the next one may be any.
  first_page_ = pages_.empty() ? std::max(page, fused_ / kPageRows) : first_page_ + gone;
}

Result<float*> DraftContext::WritablePage(int64_t position) {
  Backend& backend = drafter_->backend();
  const size_t index = static_cast<size_t>(position / kPageRows - first_page_);
  const size_t bytes = PageFloats(*drafter_, kPageRows) * sizeof(float);
  while (pages_.size() <= index) {
    pages_.push_back(std::make_shared<Buffer>(TRY(backend.Allocate(bytes))));
  }
  Page& page = pages_[index];
  if (page.use_count() > 1) {
    auto own = std::make_shared<Buffer>(TRY(backend.Allocate(bytes)));
    TRY(backend.Copy(own->data(), page->data(), bytes));
    page = std::move(own);
  }
  return page->floats();
}

std::vector<const float*> DraftContext::LayerPages(size_t layer) const {
  const size_t offset = layer * 2 * static_cast<size_t>(kPageRows * drafter_->config().kv_width());
  std::vector<const float*> pages;
  for (const Page& page : pages_) pages.push_back(page->floats() + offset);
  return pages;
}

}  // namespace hallmark
