// kernels.cuh - what the trainer's networks do on a GPU that torch does in many pieces: sums of a table's
// entries over the tokens of a row, and the pointwise part of an LSTM's step. Pointers are the device's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hl::learn {

// Tokens [rows, count, 3]: a location, a feature and a value each.
struct Tokens {
  const uint8_t* bytes;
  int rows, count;
};

// One step of an LSTM of [rows, width], and where its parts lie; gates are i, f, g, o beside one another.
struct Cells {
  int rows, width;
  bool half;                // whether gates and hidden states are bfloat16, else float
  const bool* begins_next;  // [rows], where the next step begins an episode; nullptr at the last step
};

// sums [rows, width] = for each row the sum of the table's entries at its tokens; width is a multiple of 4.
void sum_tokens(const Tokens& tokens, const float* table, int width, float* sums, uintptr_t stream);

// to [count, width] = the rows of from at some numbers; rows are a multiple of 16 bytes.
void take_rows(const void* from, const int64_t* numbers, int64_t count, int bytes, void* to,
               uintptr_t stream);

// Adds the gradient of the sums to that of the table [2^16, width].
void add_token_gradient(const Tokens& tokens, const float* gradient, int width, float* by_table,
                        uintptr_t stream);

// From both shares of the gates before their activation and the cell that was kept to what the step gives:
// activated gates, cell and hidden state, and both as the next step begins with them.
void lstm_step(const Cells& cells, const void* from_input, const void* from_hidden, const float* kept_cell,
               void* gates, float* cell, void* hidden, void* next_hidden, float* next_cell, uintptr_t stream);

// The gradient by the gates before their activation and by the kept cell, from that of the hidden state and
// what the next step asks for, which is nullptr at the last one.
void lstm_step_back(const Cells& cells, const void* gates, const float* cell, const float* kept_cell,
                    const void* by_hidden, const void* by_next_hidden, const float* by_next_cell,
                    void* by_gates, float* by_kept_cell, uintptr_t stream);

}  // namespace hl::learn
