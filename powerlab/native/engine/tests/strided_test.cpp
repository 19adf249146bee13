// Kernels of general tensors on random shapes and strides, forwards and backwards: right, the same bits on any threads,
// nothing written elsewhere; and what they say of numbers they cannot compute with.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kRounds = 60;
constexpr std::int64_t kUnwritten = -7777777;

// Memory of elements of one type, and a tensor in it.
template <typename T>
struct General {
  std::vector<T> memory;
  Strided tensor{};

  General(const std::vector<std::int64_t>& sizes, Random& random, bool repeats) {
    tensor.element = sizeof(T) == 8 ? Element::kInt : Element::kFloat;
    tensor.rank = static_cast<std::int32_t>(sizes.size());
    std::int64_t apart = random.whole(1, 2), start = 0;
    for (std::int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
      const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
      tensor.size[axis] = size;
      if (repeats && random.whole(0, 3) == 0) continue;  // a stride of 0
      tensor.stride[axis] = random.coin() ? apart : -apart;
      if (tensor.stride[axis] < 0) start += (size - 1) * apart;
      apart *= size + random.whole(0, 1);
    }
    memory.assign(static_cast<std::size_t>(apart), static_cast<T>(kUnwritten));
    tensor.data = memory.data() + start;
  }
  T& at(std::int64_t index) {
    T* place = static_cast<T*>(tensor.data);
    for (std::int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
      place += index % tensor.size[axis] * tensor.stride[axis];
      index /= tensor.size[axis];
    }
    return *place;
  }
  void fill(Random& random) {
    for (T& value : memory) value = static_cast<T>(random.whole(-40, 40)) / static_cast<T>(sizeof(T) == 8 ? 1 : 8);
  }
  std::int64_t written() const {
    std::int64_t count = 0;
    for (const T& value : memory) count += value != static_cast<T>(kUnwritten);
    return count;
  }
};

std::vector<std::int64_t> random_sizes(Random& random) {
  std::vector<std::int64_t> sizes;
  for (int axis = random.whole(1, 5); axis > 0; --axis) sizes.push_back(random.whole(1, axis == 1 ? 40 : 4));
  return sizes;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

// Runs a kernel of two operands that are read, on one thread and on several, and compares with `expected`.
template <typename Out, typename In, typename Expected>
void check_two(const KernelTable& table, const char* family, Expected expected, Random& random, Report& report) {
  const auto sizes = random_sizes(random);
  General<In> x(sizes, random, true), y(sizes, random, true);
  x.fill(random);
  y.fill(random);
  General<Out> out(sizes, random, false), again = out;
  again.tensor.data = again.memory.data() + (static_cast<Out*>(out.tensor.data) - out.memory.data());
  Strided operands[] = {out.tensor, x.tensor, y.tensor};
  std::int32_t fault = 0;
  Step step{};
  step.operands = operands;
  step.operand_count = 3;
  step.fault = &fault;
  run_kernel(table, family, step, 1);
  operands[0] = again.tensor;
  run_kernel(table, family, step, random.whole(2, 9));
  int wrong = 0, differ = 0;
  for (std::int64_t i = 0; i < product(sizes); ++i) {
    wrong += out.at(i) != expected(x.at(i), y.at(i));
    differ += out.at(i) != again.at(i);
  }
  const std::string name = std::string(find_kernel(table, family).name) + ", " + std::to_string(product(sizes));
  report.check(name + " elements", wrong, 0);
  report.check(name + ", bits on several threads", differ, 0);
  report.check(name + ", written outside", static_cast<double>(out.written() - product(sizes)), 0);
  report.check(name + ", fault", fault, 0);
}

// Copies a tensor whose axes lie in another order than those of the copy: lines, tiles and rests of tiles.
template <typename T>
void check_copy(const KernelTable& table, const char* family, Random& random, Report& report) {
  std::vector<std::int64_t> sizes;
  for (int axis = random.whole(1, 3); axis > 0; --axis) sizes.push_back(random.whole(1, random.coin() ? 40 : 3));
  std::vector<std::int32_t> order;  // of the axes as they lie in memory
  for (std::int32_t axis = 0; axis < std::ssize(sizes); ++axis) {
    order.insert(order.begin() + random.whole(0, static_cast<int>(order.size())), axis);
  }
  std::vector<std::int64_t> lying;
  for (const std::int32_t axis : order) lying.push_back(sizes[static_cast<std::size_t>(axis)]);
  General<T> x(lying, random, false), out(sizes, random, false);
  x.fill(random);
  Strided turned = x.tensor;
  for (std::int32_t place = 0; place < turned.rank; ++place) {
    const std::int32_t axis = order[static_cast<std::size_t>(place)];
    turned.size[axis] = x.tensor.size[place];
    turned.stride[axis] = x.tensor.stride[place];
  }
  x.tensor = turned;
  Strided operands[] = {out.tensor, x.tensor};
  std::int32_t fault = 0;
  Step step{};
  step.operands = operands;
  step.operand_count = 2;
  step.fault = &fault;
  run_kernel(table, family, step, random.whole(1, 5));
  int wrong = 0;
  for (std::int64_t i = 0; i < product(sizes); ++i) wrong += out.at(i) != x.at(i);
  const std::string name = std::string(find_kernel(table, family).name) + ", " + std::to_string(product(sizes));
  report.check(name + " elements", wrong, 0);
  report.check(name + ", written outside", static_cast<double>(out.written() - product(sizes)), 0);
}

void check_elements(const KernelTable& table, Random& random, Report& report) {
  using Int = std::int64_t;
  for (int round = 0; round < 8; ++round) {
    check_copy<float>(table, "copy_strided_f32", random, report);
    check_copy<std::int64_t>(table, "copy_strided_i64", random, report);
  }
  check_two<float, float>(table, "add_strided_f32", [](float x, float y) { return x + y; }, random, report);
  check_two<float, float>(table, "mul_strided_f32", [](float x, float y) { return x * y; }, random, report);
  check_two<float, float>(table, "max_strided_f32", [](float x, float y) { return x > y ? x : y; }, random, report);
  check_two<Int, Int>(table, "sub_strided_i64", [](Int x, Int y) { return x - y; }, random, report);
  check_two<Int, Int>(table, "bit_xor_strided_i64", [](Int x, Int y) { return x ^ y; }, random, report);
  check_two<Int, float>(table, "less_strided_f32", [](float x, float y) { return Int{x < y}; }, random, report);
  check_two<Int, Int>(table, "equal_strided_i64", [](Int x, Int y) { return Int{x == y}; }, random, report);
}

// Sums over the last axes of a random tensor.
void check_sums(const KernelTable& table, Random& random, Report& report) {
  const auto sizes = random_sizes(random);
  const int reduced = random.whole(1, static_cast<int>(sizes.size()));
  General<float> x(sizes, random, false);
  x.fill(random);
  auto kept = sizes;
  for (int axis = 0; axis < reduced; ++axis) kept[kept.size() - 1 - static_cast<std::size_t>(axis)] = 1;
  General<float> out(kept, random, false);
  Strided results = out.tensor;
  for (std::int32_t axis = 0; axis < results.rank; ++axis) results.size[axis] = sizes[static_cast<std::size_t>(axis)];
  for (std::int32_t axis = results.rank - reduced; axis < results.rank; ++axis) results.stride[axis] = 0;
  const Strided operands[] = {results, x.tensor};
  std::int32_t fault = 0;
  Step step{};
  step.operands = operands;
  step.operand_count = 2;
  step.numbers[0] = reduced;
  step.numbers[1] = reduced < x.tensor.rank ? random.whole(0, 1) : 0;
  step.fault = &fault;
  run_kernel(table, "reduce_sum_f32", step, random.whole(1, 5));
  const std::int64_t each = product(sizes) / product(kept);
  double worst = 0;
  for (std::int64_t i = 0; i < product(kept); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < each; ++k) sum += x.at(i * each + k);
    worst = std::fmax(worst, std::fabs(out.at(i) - sum));
  }
  report.check(std::string(table.tier) + " reduce_sum_f32", worst, 1e-5);
}

// Places from 0 on and from the end; one outside is a fault, and nothing outside is read.
void check_take(const KernelTable& table, Random& random, Report& report) {
  const std::int64_t rows = random.whole(1, 6), columns = random.whole(1, 20), wanted = random.whole(1, 9);
  General<float> x({rows, columns}, random, false), out({wanted, columns}, random, false);
  x.fill(random);
  std::vector<std::int64_t> index(static_cast<std::size_t>(wanted));
  for (auto& place : index) place = random.whole(static_cast<int>(-rows), static_cast<int>(rows) - 1);
  Strided data = out.tensor, places = out.tensor, indexed{};
  data.data = x.tensor.data;
  data.stride[0] = 0;
  data.stride[1] = x.tensor.stride[1];
  places.data = index.data();
  places.element = Element::kInt;
  places.stride[0] = 1;
  places.stride[1] = 0;
  indexed.data = x.tensor.data;
  indexed.rank = 1;
  indexed.size[0] = rows;
  indexed.stride[0] = x.tensor.stride[0];
  const Strided operands[] = {out.tensor, data, places, indexed};
  std::int32_t fault = 0;
  Step step{};
  step.operands = operands;
  step.operand_count = 4;
  step.fault = &fault;
  run_kernel(table, "take_f32", step, random.whole(1, 4));
  int wrong = 0;
  for (std::int64_t i = 0; i < wanted * columns; ++i) {
    const std::int64_t place = index[static_cast<std::size_t>(i / columns)];
    wrong += out.at(i) != x.at((place < 0 ? place + rows : place) * columns + i % columns);
  }
  report.check(std::string(table.tier) + " take_f32", wrong, 0);
  report.check(std::string(table.tier) + " take_f32, sound", fault, kSound);
  index[0] = random.coin() ? rows : -rows - 1;
  run_kernel(table, "take_f32", step, 2);
  report.check(std::string(table.tier) + " take_f32, outside", fault == kIndexOutside ? 0 : 1, 0);
}

void check_faults(const KernelTable& table, Report& report) {
  std::int64_t out[1] = {0}, x[1] = {5}, y[1] = {0};
  const auto tensor = [](std::int64_t* data) {
    Strided made{};
    made.data = data;
    made.element = Element::kInt;
    made.rank = 1;
    made.size[0] = made.stride[0] = 1;
    return made;
  };
  const Strided operands[] = {tensor(out), tensor(x), tensor(y)};
  std::int32_t fault = 0;
  Step step{};
  step.operands = operands;
  step.operand_count = 3;
  step.fault = &fault;
  run_kernel(table, "div_strided_i64", step, 1);
  report.check(std::string(table.tier) + " a division by 0", fault == kDivisionByZero ? 0 : 1, 0);
  fault = kSound;
  x[0] = std::numeric_limits<std::int64_t>::min();
  y[0] = -1;
  run_kernel(table, "div_strided_i64", step, 1);
  report.check(std::string(table.tier) + " a quotient that wraps", out[0] == x[0] && fault == kSound ? 0 : 1, 0);
  step.numbers[0] = 56;  // int8
  x[0] = 127;
  y[0] = 1;
  run_kernel(table, "add_strided_i64", step, 1);
  report.check(std::string(table.tier) + " a sum that wraps", out[0] == -128 ? 0 : 1, 0);
}

}  // namespace

void check_general(const KernelTable& table, Report& report) {
  Random random(11);
  for (int round = 0; round < kRounds; ++round) {
    check_elements(table, random, report);
    check_sums(table, random, report);
    check_take(table, random, report);
  }
  check_faults(table, report);
}

}  // namespace powerlab::engine::test
