// Work for other threads while the caller goes on: a list of functions, done in their order by whoever is free.
//
// Threads start when there is work for them, end with the queue, and never need the interpreter. What a function holds
// is given up by whoever finishes or destroys the queue, on its thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace powerlab::engine {

class WorkQueue {
 public:
  // Has so many threads at most; with none, whoever finishes does everything. Throws std::invalid_argument for less.
  explicit WorkQueue(int threads);
  // Waits for what has begun; the rest is not done.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Returns the number of the work, which counts from 0. Where the system refuses a thread, there is one fewer.
  std::int64_t add(std::function<void()> work);

  // Returns how much work was added so far.
  std::int64_t added() const;

  // Whether a work is done, or has failed.
  bool is_done(std::int64_t number) const;

  // Does what nobody has begun, waits for the rest, and gives all of it up. Throws what the first that failed threw.
  void finish();

 private:
  struct Entry {
    std::function<void()> work;
    bool done = false;
    std::exception_ptr error;
  };

  void serve();
  void do_next(std::unique_lock<std::mutex>& lock);
  void start_thread();

  const int most_threads_;
  mutable std::mutex mutex_;
  std::condition_variable added_, done_;
  std::deque<Entry> entries_;   // guarded by the mutex, as all below; an entry stays where it is
  std::int64_t forgotten_ = 0;  // entries that are no longer there
  std::size_t begun_ = 0, ended_ = 0;
  int waiting_ = 0;  // threads without work
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace powerlab::engine
