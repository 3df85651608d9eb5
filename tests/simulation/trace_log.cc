#include "tests/simulation/trace_log.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace shoal {
namespace {

class TraceSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit TraceSink(World* world) : world_(world) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    world_->Trace("log", std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  World* const world_;
};

}  // namespace

TraceLog::TraceLog(World* world) {
  auto logger = std::make_shared<spdlog::logger>("text", std::make_shared<TraceSink>(world));
  logger->set_level(world->tracing() ? spdlog::level::info : spdlog::level::off);
  spdlog::set_default_logger(std::move(logger));
}

TraceLog::~TraceLog() {
  auto logger = std::make_shared<spdlog::logger>("text");
  logger->set_level(spdlog::level::off);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace shoal
