#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// The threshold of one row, in the notation of SparsemaxOp's comment.
struct Threshold {
  std::vector<int64_t> places = {};  // of z[1] to z[k]
  double tau = 0;
};

Threshold FindThreshold(const double* x, int64_t columns) {
  std::vector<int64_t> places(columns);
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [x](int64_t a, int64_t b) {
    return std::isnan(x[b]) ? !std::isnan(x[a]) : x[a] > x[b];
  });
  double c = 0, sum = 0;
  size_t k = 0;
  for (const int64_t place : places) {
    c += x[place];
    const double j = static_cast<double>(k + 1);
    if (k > 0 && !(1 + j * x[place] > c)) break;
    sum += c;
    ++k;
  }
  places.resize(k);
  return {places, (sum - 1) / static_cast<double>(k)};
}

}  // namespace

void Sparsemax(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t row = 0; row < a.output().size(); row += columns) {
    const double* x = a.inputs[0].data + row;
    const double tau = FindThreshold(x, columns).tau;
    for (int64_t i = 0; i < columns; ++i) a.output().data[row + i] = x[i] < tau ? 0 : x[i] - tau;
  }
}

void SparsemaxBackward(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t row = 0; row < a.output().size(); row += columns) {
    const double* x = a.inputs[0].data + row;
    double* dx = a.output().data + row;
    const auto [places, tau] = FindThreshold(x, columns);
    double of_tau = 0;
    for (int64_t i = 0; i < columns; ++i) {
      dx[i] = (x[i] > tau ? 1 : x[i] == tau ? 0.5 : 0) * a.inputs[1].data[row + i];
      of_tau -= dx[i];
    }
    const double k = static_cast<double>(places.size());
    for (size_t j = 0; j < places.size(); ++j) {
      dx[places[j]] += of_tau * (k - static_cast<double>(j)) / k;
    }
  }
}

}  // namespace shoal::reference
