#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

// Where examples are and how they are read: one entry of a job's data section, checked. Which
// fields a format takes, the table in data_source_reader.cc says; the others are at their defaults.
// The words are those of keras.utils.image_dataset_from_directory and tf.data where these have any.
struct DataSource {
  // What an example has for an input of the model, in the format's own terms: a file, an array,
  // columns, a key.
  struct Feature {
    std::string input;  // its name; empty: the model's only one
    std::vector<std::string> from;
  };

  std::string images;  // the file of examples, for a model with one input; absolute, as all paths
  std::string labels;  // the file, array, column or key of the labels
  std::string format = "arrays";
  std::vector<Feature> features;

  // The part of the data that is used. An example belongs to the same part on every machine.
  double validation_split = 0;  // share of the examples
  double test_split = 0;
  std::string subset;  // "training", "validation", "test"; empty: all of it
  uint64_t seed = 0;   // of the choice

  std::string cache;  // of decoded examples: "memory", "disk"; empty: none

  bool empty() const { return images.empty() && features.empty(); }
};

}  // namespace shoal
