// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/parallel.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#endif

namespace hallmark {
namespace {

constexpr size_t kAlignment = 64;
// Beyond this a size is a mistake, not a wish; no allocator is asked for it.
constexpr size_t kMostScratch = size_t{1} << 40;
// About 50 us of spinning on current machines: longer than the gap between two operations of one
// token, shorter than anything a person or another process would notice.
constexpr int kSpins = 2000;
// A waiting caller gives its core away after this long: the member it waits for may need it.
constexpr int kSpinsBeforeYield = 4000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

constexpr uint64_t kTaskLimit = 0xFFFF;
uint32_t Epoch(uint64_t claim) { return static_cast<uint32_t>(claim >> 32); }
uint64_t Tasks(uint64_t claim) { return (claim >> 16) & kTaskLimit; }
uint64_t Next(uint64_t claim) { return claim & kTaskLimit; }

}  // namespace

int DefaultThreads() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void ThreadPool::Free::operator()(std::byte* data) const {
  ::operator delete (data, std::align_val_t{kAlignment});
}

ThreadPool::ThreadPool(int threads) {
  for (int member = 1; member < threads; ++member) {
    try {
      workers_.emplace_back([this, member] { WorkerLoop(member); });
    } catch (const std::system_error&) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  bell_.fetch_add(1);
  bell_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Status ThreadPool::Reserve(size_t shared, size_t own) {
  const auto grow = [](Scratch& scratch, size_t& size, size_t wanted, size_t copies) -> Status {
    if (wanted <= size) return {};
    scratch.reset();
    size = 0;
    void* data = nullptr;
    if (wanted <= kMostScratch / copies) {
      wanted = (wanted + kAlignment - 1) / kAlignment * kAlignment;
      data = ::operator new (wanted* copies, std::align_val_t{kAlignment}, std::nothrow);
    }
    if (data == nullptr) {
      return Fail(Code::kResource, "no memory for " + std::to_string(copies) + " x " +
                                       std::to_string(wanted) + " bytes of scratch");
    }
    scratch.reset(static_cast<std::byte*>(data));
    size = wanted;
    return {};
  };
  TRY(grow(shared_, shared_size_, shared, 1));
  return grow(own_, own_size_, own, static_cast<size_t>(threads()));
}

void ThreadPool::Run(int64_t count, const void* task, Body body) {
  const int64_t grain = (count - 1) / static_cast<int64_t>(kTaskLimit) + 1;
  const int64_t tasks = (count - 1) / grain + 1;
  // Nobody reads these now: every task of the last operation was claimed and has ended, and a late
  // member that reads them finds its claim refused.
  task_.store(task, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  count_.store(count, std::memory_order_relaxed);
  grain_.store(grain, std::memory_order_relaxed);
  unfinished_.store(tasks, std::memory_order_relaxed);
  const uint64_t epoch = Epoch(claim_.load(std::memory_order_relaxed)) + uint64_t{1};
  claim_.store((epoch << 32) | (static_cast<uint64_t>(tasks) << 16), std::memory_order_seq_cst);
  bell_.fetch_add(1, std::memory_order_seq_cst);
  bell_.notify_all();
  Work(0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::Work(int member) {
  for (;;) {
    uint64_t claim = claim_.load(std::memory_order_acquire);
    if (Next(claim) >= Tasks(claim)) return;
    const void* task = task_.load(std::memory_order_relaxed);
    const Body body = body_.load(std::memory_order_relaxed);
    const int64_t count = count_.load(std::memory_order_relaxed);
    const int64_t grain = grain_.load(std::memory_order_relaxed);
    if (!claim_.compare_exchange_strong(claim, claim + 1, std::memory_order_acq_rel)) continue;
    const int64_t first = static_cast<int64_t>(Next(claim)) * grain;
    for (int64_t i = first; i < std::min(first + grain, count); ++i) body(task, i, member);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::WorkerLoop(int member) {
  uint32_t heard = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    Work(member);
    uint32_t bell = bell_.load(std::memory_order_acquire);
    for (int spins = 0; bell == heard && spins < kSpins; ++spins) {
      Pause();
      bell = bell_.load(std::memory_order_acquire);
    }
    if (bell == heard) bell_.wait(heard, std::memory_order_acquire);
    heard = bell_.load(std::memory_order_acquire);
  }
}

}  // namespace hallmark
