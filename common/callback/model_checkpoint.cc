// Keras's ModelCheckpoint with save_best_only: keeps the checkpoint of the best epoch.
#include <nlohmann/json.hpp>

#include "common/callback/callback.h"
#include "common/json/keras_options.h"

namespace shoal {

using nlohmann::json;

Callback MakeModelCheckpointCallback(KerasOptions& options) {
  Callback callback;
  ReadMonitored(options, &callback.monitor);
  callback.monitor.threshold =
      options.NumberOrNull("initial_value_threshold", std::nullopt, {.min = -1e30, .max = 1e30});
  JsonObject& given = options.given();
  constexpr char kBestOnly[] = "save_best_only";
  if (const json* value = given.Find(kBestOnly); value != nullptr && *value != true) {
    given.AddWrong(kBestOnly, *value, "true; $.checkpoint sets when other checkpoints are written");
  }
  options.Resolve(kBestOnly, true, "`save_best_only` (true)");
  constexpr char kFrequency[] = "save_freq";
  if (const json* value = given.Find(kFrequency); value != nullptr && *value != "epoch")
    given.AddWrong(kFrequency, *value, "\"epoch\"");
  // Shoal chooses the path itself, and a checkpoint always has everything.
  for (const char* key : {"filepath", "save_weights_only"}) options.Ignore(key);
  return callback;
}

}  // namespace shoal
