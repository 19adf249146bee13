#include "work_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "signals_blocked.hpp"

namespace powerlab::engine {

WorkQueue::WorkQueue(int threads) : most_threads_(threads) {
  if (threads < 0) throw std::invalid_argument("a queue of work needs 0 threads or more.");
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::int64_t WorkQueue::add(std::function<void()> work) {
  std::int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = forgotten_ + std::ssize(entries_);
    entries_.push_back({std::move(work), false, nullptr});
    if (waiting_ < std::ssize(entries_) - static_cast<std::ptrdiff_t>(begun_)) start_thread();
  }
  added_.notify_one();
  return number;
}

void WorkQueue::start_thread() {
  if (std::ssize(threads_) >= most_threads_) return;
  const SignalsBlocked blocked;
  try {
    threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {  // whoever finishes does what is left
  }
}

std::int64_t WorkQueue::added() const {
  const std::lock_guard lock(mutex_);
  return forgotten_ + std::ssize(entries_);
}

bool WorkQueue::is_done(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  return number < forgotten_ || entries_[static_cast<std::size_t>(number - forgotten_)].done;
}

void WorkQueue::finish() {
  std::deque<Entry> finished;
  {
    std::unique_lock lock(mutex_);
    while (begun_ < entries_.size()) do_next(lock);
    done_.wait(lock, [this] { return ended_ == entries_.size(); });
    forgotten_ += std::ssize(entries_);
    begun_ = ended_ = 0;
    finished.swap(entries_);
  }
  const auto failed = std::ranges::find_if(finished, [](const Entry& entry) { return entry.error != nullptr; });
  if (failed != finished.end()) std::rethrow_exception(failed->error);
}

void WorkQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++waiting_;
    added_.wait(lock, [this] { return ends_ || begun_ < entries_.size(); });
    --waiting_;
    if (ends_) return;
    do_next(lock);
  }
}

void WorkQueue::do_next(std::unique_lock<std::mutex>& lock) {
  Entry& entry = entries_[begun_++];
  lock.unlock();
  std::exception_ptr error;
  try {
    entry.work();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  entry.error = error;
  entry.done = true;
  if (++ended_ == entries_.size()) done_.notify_all();
}

}  // namespace powerlab::engine
