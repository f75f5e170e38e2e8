// SPDX-License-Identifier: Apache-2.0
// ThreadPool: a fixed team that runs the independent tasks of one operation. Not a queue: one
// operation at a time, from one caller, and the caller works too. Which thread runs a task and how
// many threads there are must not reach a result: tasks write disjoint outputs and share no sum.
// Idle threads spin for some microseconds, so that the operations of a token find them awake, and
// then sleep.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_PARALLEL_H_
#define HALLMARK_ENGINE_BACKEND_CPU_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

// Threads this process may run at once: its CPU affinity, at least 1.
int DefaultThreads();

class ThreadPool {
 public:
  // A team of max(threads, 1), the caller included. If the system refuses threads, fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs task(0) ... task(count - 1), each once, and returns when all have ended. Not reentrant.
  // `task` must not throw. A task may also take the team member's number, 0 ... threads() - 1.
  template <typename Task>
  void ParallelFor(int64_t count, const Task& task) {
    if (count <= 0) return;
    if (count == 1 || workers_.empty()) {
      for (int64_t i = 0; i < count; ++i) Call(task, i, 0);
      return;
    }
    Run(count, &task, [](const void* object, int64_t index, int member) {
      Call(*static_cast<const Task*>(object), index, member);
    });
  }

  // Scratch memory, 64-byte aligned, kept between operations: Reserve makes `shared` bytes for the
  // caller and `own` bytes for each member, or fails with kResource. Contents do not survive it.
  Status Reserve(size_t shared, size_t own);
  std::byte* shared_scratch() { return shared_.get(); }
  std::byte* own_scratch(int member) {
    return own_.get() + static_cast<size_t>(member) * own_size_;
  }

 private:
  using Body = void (*)(const void* task, int64_t index, int member);
  struct Free {
    void operator()(std::byte* data) const;
  };
  using Scratch = std::unique_ptr<std::byte[], Free>;

  template <typename Task>
  static void Call(const Task& task, int64_t index, int member) {
    if constexpr (std::is_invocable_v<const Task&, int64_t, int>) {
      task(index, member);
    } else {
      task(index);
    }
  }

  void Run(int64_t count, const void* task, Body body);
  // Runs tasks of the current operation until none is left unclaimed.
  void Work(int member);
  void WorkerLoop(int member);

  // The operation under way: epoch << 32 | tasks << 16 | next unclaimed. One word, so that claiming
  // a task also proves that the fields below still belong to it.
  std::atomic<uint64_t> claim_{0};
  std::atomic<const void*> task_{nullptr};
  std::atomic<Body> body_{nullptr};
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> grain_{1};  // indices a task
  alignas(64) std::atomic<int64_t> unfinished_{0};
  alignas(64) std::atomic<uint32_t> bell_{0};  // rung at each operation; sleepers wait on it
  std::atomic<bool> stopping_{false};

  std::vector<std::thread> workers_;
  Scratch shared_;
  size_t shared_size_ = 0;
  Scratch own_;
  size_t own_size_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_PARALLEL_H_
