// Stands in for NVIDIA's management library: knows one GPU, which does not say how much power it
// takes. The variables FAKE_NVML_INIT and FAKE_NVML_MEMORY are what nvmlInit_v2 and
// nvmlDeviceGetMemoryInfo return.

#include <cstdlib>
#include <cstring>

namespace {
int AnswerIn(const char* variable) {
  const char* const answer = std::getenv(variable);
  return answer == nullptr ? 0 : std::atoi(answer);
}
}  // namespace

extern "C" {

int nvmlInit_v2() { return AnswerIn("FAKE_NVML_INIT"); }

const char* nvmlErrorString(int status) {
  return status == 9 ? "Driver Not Loaded" : status == 6 ? "Not Found" : "Not Supported";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  static int gpu;
  *device = &gpu;
  return std::strcmp(uuid, "GPU-1234") == 0 ? 0 : 6;
}

int nvmlDeviceGetUtilizationRates(void* /*device*/, unsigned* percents) {
  percents[0] = 75;
  percents[1] = 30;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* /*device*/, unsigned long long* total_free_used) {
  total_free_used[0] = 80ULL << 30;
  total_free_used[1] = 68ULL << 30;
  total_free_used[2] = 12ULL << 30;
  return AnswerIn("FAKE_NVML_MEMORY");
}

int nvmlDeviceGetTemperature(void* /*device*/, int sensor, unsigned* celsius) {
  *celsius = 61;
  return sensor == 0 ? 0 : 3;
}

int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* /*milliwatts*/) { return 3; }
}
