// The queue of work: what is done, how often, by when, and what becomes of work that fails or is not waited for.
#include "work_queue.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

std::string name_of(int threads, const char* what) {
  return "queue of " + std::to_string(threads) + " threads, " + what;
}

void check_all_work_is_done_once(int threads, Report& report) {
  WorkQueue queue(threads);
  constexpr int kEach = 100, kRounds = 3;
  std::vector<int> done(kEach * kRounds);  // threads write without order, but each to its own
  std::int64_t wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int work = 0; work < kEach; ++work) {
      const int number = round * kEach + work;
      wrong += queue.add([&done, number] { ++done[static_cast<std::size_t>(number)]; }) != number;
    }
    queue.finish();
    wrong += queue.added() != (round + 1) * kEach;
    for (int number = 0; number < (round + 1) * kEach; ++number) {
      wrong += done[static_cast<std::size_t>(number)] != 1 || !queue.is_done(number);
    }
  }
  report.check(name_of(threads, "work done"), static_cast<double>(wrong), 0);
}

void check_work_is_done_meanwhile(int threads, Report& report) {
  WorkQueue queue(threads);
  const std::int64_t number = queue.add([] {});
  while (threads > 0 && !queue.is_done(number)) std::this_thread::yield();
  report.check(name_of(threads, "work done before it is waited for"), queue.is_done(number) != (threads > 0), 0);
}

void check_failures_are_told(int threads, Report& report) {
  WorkQueue queue(threads);
  std::atomic<int> done{0};
  for (int work = 0; work < 9; ++work) {
    queue.add([&done, work] {
      if (work % 4 == 2) throw std::runtime_error(std::to_string(work));
      ++done;
    });
  }
  std::string told = "nothing";
  try {
    queue.finish();
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  queue.finish();  // tells it once
  report.check(name_of(threads, "told of the first failure"), told != "2", 0);
  report.check(name_of(threads, "work beside failures"), done - 7, 0);
}

void check_work_is_given_up(int threads, Report& report) {
  const auto held = std::make_shared<int>(0);
  WorkQueue queue(threads);
  queue.add([held] {});
  queue.finish();
  report.check(name_of(threads, "held after the end"), static_cast<double>(held.use_count() - 1), 0);
  {
    WorkQueue other(threads);
    for (int work = 0; work < 50; ++work) other.add([held] {});
  }
  report.check(name_of(threads, "held after the queue"), static_cast<double>(held.use_count() - 1), 0);
}

}  // namespace

void check_work_queue(Report& report) {
  for (const int threads : {0, 1, 3}) {
    check_all_work_is_done_once(threads, report);
    check_work_is_done_meanwhile(threads, report);
    check_failures_are_told(threads, report);
    check_work_is_given_up(threads, report);
  }
  bool refused = false;
  try {
    const WorkQueue queue(-1);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  report.check("queue of -1 threads", !refused, 0);
}

}  // namespace powerlab::engine::test
