// quick_look_avx512.cpp - an observation read many tokens at a time. Must agree with look_closely in sight.h.
//
// What an agent sees cannot be guessed, so there is hardly a branch here: loops turn as often as they nearly
// always have to, over lists that are filled up with nothing. It counts on the order in which the encoders
// write tokens.
#include <immintrin.h>

#include "engine/processor.h"
#include "grid/quick_look.h"

namespace hl::grid {
namespace {

// So many tokens are read at once, into three registers of which a token never fills the last byte.
constexpr uint32_t at_once = 63, a_third = 21;

HL_OWN __m512i load(const void* from) { return _mm512_loadu_si512(from); }
HL_OWN void store(void* to, __m512i what) { _mm512_storeu_si512(to, what); }
HL_OWN __m128i load_16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
HL_OWN __m512i load_8_wide(const uint8_t* from) {
  return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
HL_OWN __m512i bytes_of(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
HL_OWN __m512i ints_of(int x) { return _mm512_set1_epi32(x); }
HL_OWN uint64_t where(__m512i bytes, int x) { return _mm512_cmpeq_epu8_mask(bytes, bytes_of(x)); }
HL_OWN uint32_t count_of(uint64_t set) { return static_cast<uint32_t>(_mm_popcnt_u64(set)); }

// A bit each at these places; beyond 63, where a filler is, at none.
HL_OWN __m512i bit_at(__m512i place) { return _mm512_sllv_epi64(_mm512_set1_epi64(1), place); }

// --- tokens in columns ---------------------------------------------------------------------------

struct Tokens {
  __m512i location, feature, value;
};

// Where a token's byte is in the register with its third.
struct Column {
  uint8_t from[64] = {};

  constexpr explicit Column(uint32_t offset) {
    for (uint32_t k = 0; k < at_once; ++k) from[k] = static_cast<uint8_t>(k % a_third * 3 + offset);
    from[63] = 63;
  }
};
constexpr Column locations(0), features(1), values(2);

HL_OWN __m512i gather(const Column& column, __m512i first, __m512i second, __m512i third) {
  __m512i from = load(column.from);
  __m512i bytes = _mm512_permutexvar_epi8(from, first);
  bytes = _mm512_mask_permutexvar_epi8(bytes, ~uint64_t{0} << a_third, from, second);
  return _mm512_mask_permutexvar_epi8(bytes, ~uint64_t{0} << 2 * a_third, from, third);
}

HL_OWN __m512i read_third(const uint8_t* from, const uint8_t* end) {
  ptrdiff_t left = end - from;
  uint64_t there = left >= 63 ? ~uint64_t{0} >> 1 : left > 0 ? (uint64_t{1} << left) - 1 : 0;
  return _mm512_mask_loadu_epi8(bytes_of(unused), there, from);
}

// As many tokens as go at once, of which those beyond the end are unused.
HL_OWN Tokens read(const uint8_t* from, const uint8_t* end) {
  __m512i first = read_third(from, end), second = read_third(from + 3 * a_third, end),
          third = read_third(from + 6 * a_third, end);
  return {gather(locations, first, second, third), gather(features, first, second, third),
          gather(values, first, second, third)};
}

// --- the agent's own tokens, and the global ones -----------------------------------------------------

// A place for each feature, in the order in which tokens come.
struct Order {
  uint8_t of[64] = {};
  uint8_t inventory = 0;

  constexpr Order() {
    uint8_t next = 0;
    for (Feature f : {feature_completion, feature_last_action, feature_last_reward, feature_east,
                      feature_west, feature_north, feature_south, feature_team, feature_tag, feature_vibe}) {
      of[f] = next++;
    }
    inventory = next = 16;  // a copy from there is one load
    for (uint32_t k = 0; k < 2 * max_resources; ++k) of[feature_inventory + k] = next++;
    for (Feature f : {feature_group, feature_frozen, feature_agent_id}) of[f] = next++;
  }
};
constexpr Order order;

// Own tokens and global ones are in order: what is left is to put each in its place.
HL_OWN void see_self(const Tokens& tokens, uint64_t own, Sight& sight) {
  uint8_t places[64], shown[64];
  store(places, _mm512_mask_permutexvar_epi8(bytes_of(0xFF), own, tokens.feature, load(order.of)));
  __m512i there = _mm512_setzero_si512();
  for (uint32_t k = 0; k < 16 || k < count_of(own); k += 8) {
    there |= bit_at(load_8_wide(places + k));
  }
  auto set = static_cast<uint64_t>(_mm512_reduce_or_epi64(there));
  store(shown, _mm512_maskz_expand_epi8(set, tokens.value));
  auto of = [&](Feature f) { return shown[order.of[f]]; };
  sight.last_action = of(feature_last_action);
  sight.here = {of(feature_south) - of(feature_north), of(feature_east) - of(feature_west)};
  sight.vibe = of(feature_vibe);
  sight.frozen = of(feature_frozen);
  std::memcpy(sight.held, shown + order.inventory, sizeof sight.held);
}

// --- lists of what is around it ------------------------------------------------------------------------

// Bytes of chosen tokens, and after the last at least 64 fillers.
struct alignas(64) List {
  static constexpr int filler = 0xFF;
  uint8_t at[max_tokens + 128];
  uint32_t count = 0;

  HL_OWN void append(List& list, uint64_t chosen, __m512i bytes) {
    store(list.at + list.count + 64, bytes_of(filler));
    store(list.at + list.count, _mm512_mask_compress_epi8(bytes_of(filler), chosen, bytes));
    list.count += count_of(chosen);
  }
};

struct Around {
  uint32_t tokens = 0;
  List objects, tags;           // of each object: its location and its tag
  List agents;                  // of each other agent: its location
  List stations, kinds, waits;  // of each station: its location, its kind, how long it cannot be used
  uint32_t spent[max_tokens];   // the stations that have no uses left
  uint32_t spent_count = 0;
};

// Calls visit(station, token) for tokens that come after the cooldown of the station they are about.
template <class Visit>
HL_OWN void each_of(uint64_t some, uint64_t cooldowns, const Around& around, Visit visit) {
  for (; some != 0; some &= some - 1) {
    auto token = static_cast<uint32_t>(__builtin_ctzll(some));
    uint32_t begun = around.waits.count - count_of(cooldowns >> token);
    if (begun != 0) visit(begun - 1, token);
  }
}

HL_OWN void see_tokens(Around& around, const Tokens& tokens, uint64_t own) {
  around.tokens += 64 - count_of(where(tokens.location, unused));
  uint64_t tags = where(tokens.feature, feature_tag) & ~own;
  List::append(around.objects, tags, tokens.location);
  List::append(around.tags, tags, tokens.value);
  uint64_t cooldowns = where(tokens.feature, feature_cooldown);
  List::append(around.waits, cooldowns, tokens.value);
  uint64_t clipped = where(tokens.feature, feature_clipped);
  uint64_t spent = where(tokens.feature, feature_uses) & where(tokens.value, 0);
  if ((clipped | spent) == 0) return;
  uint8_t value[64];
  store(value, tokens.value);
  each_of(clipped, cooldowns, around, [&](uint32_t station, uint32_t token) {
    uint8_t& wait = around.waits.at[station];
    wait = wait > value[token] ? wait : value[token];
  });
  each_of(spent, cooldowns, around,
          [&](uint32_t station, uint32_t) { around.spent[around.spent_count++] = station; });
}

HL_OWN void sort_objects(Around& around, const Briefing& briefing) {
  __m512i low = load(briefing.kind_of_tag), high = load(briefing.kind_of_tag + 64);
  for (uint32_t k = 0; k == 0 || k < around.objects.count; k += 64) {
    __m512i location = load(around.objects.at + k), tag = load(around.tags.at + k);
    uint64_t there = ~where(location, List::filler);
    List::append(around.agents, there & where(tag, tag_agent), location);
    uint64_t stations = there & ~where(tag, tag_agent) & ~where(tag, tag_wall);
    List::append(around.stations, stations, location);
    List::append(around.kinds, stations, _mm512_permutex2var_epi8(low, tag, high));
  }
}

// --- where something is ----------------------------------------------------------------------------------

// A set of cells by location: four words, each in eight parts that are still to be joined.
struct Cells {
  __m512i words[4] = {};

  // A filler is a cell of no window.
  HL_OWN void add_eight(Cells& cells, const uint8_t* at) {
    __m512i location = load_8_wide(at);
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      cells.words[w] |= bit_at(location - _mm512_set1_epi64(64 * w));
    }
  }

  HL_OWN Cells of(const List& list, uint32_t usual) {
    Cells cells;
    for (uint32_t k = 0; k < usual || k < list.count; k += 8) add_eight(cells, list.at + k);
    return cells;
  }

  // Sixteen rows of sixteen columns.
  HL_OWN __m256i rows(const Cells& cells) {
    auto join = [](__m512i a, __m512i b) {
      return _mm512_unpacklo_epi64(a, b) | _mm512_unpackhi_epi64(a, b);
    };
    __m512i upper = join(cells.words[0], cells.words[1]), lower = join(cells.words[2], cells.words[3]);
    __m512i even = _mm512_shuffle_i64x2(upper, lower, 0x88), odd = _mm512_shuffle_i64x2(upper, lower, 0xDD);
    __m512i pairs = even | odd, whole = pairs | _mm512_shuffle_i64x2(pairs, pairs, 0xB1);
    return _mm512_castsi512_si256(_mm512_shuffle_i64x2(whole, whole, 0x08));
  }
};

HL_OWN void put_eight_rows(uint64_t* rows, __m128i agents, __m128i blocked) {
  __m512i low = _mm512_slli_epi64(_mm512_cvtepu16_epi64(agents), Sight::margin);
  __m512i high = _mm512_slli_epi64(_mm512_cvtepu16_epi64(blocked), 32 + Sight::margin);
  store(rows, low | high);
}

HL_OWN void see_objects(const Around& around, Sight& sight) {
  __m256i agents = Cells::rows(Cells::of(around.agents, 8)), all = Cells::rows(Cells::of(around.objects, 40));
  __m256i blocked = _mm256_andnot_si256(agents, all);
  uint64_t* rows = sight.rows + Sight::margin;
  put_eight_rows(rows, _mm256_castsi256_si128(agents), _mm256_castsi256_si128(blocked));
  put_eight_rows(rows + 8, _mm256_extracti128_si256(agents, 1), _mm256_extracti128_si256(blocked, 1));
  rows[-2] = rows[-1] = rows[max_window] = rows[max_window + 1] = 0;
}

// --- stations --------------------------------------------------------------------------------------------

// Half of the stations that are remembered.
struct Half {
  static constexpr int empty = -1, nowhere = -2;
  __m512i place, ready;
  __mmask16 seen = 0;

  HL_OWN Half of(const Stations& memory, int first) {
    static_assert(Stations::capacity == 32);
    uint32_t known = memory.met < 32 ? (1u << memory.met) - 1 : ~0u;
    __m256i place = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(memory.place + first));
    return {_mm512_mask_cvtepu16_epi32(ints_of(empty), static_cast<__mmask16>(known >> first), place),
            load(memory.ready + first)};
  }

  HL_OWN void see(Half& half, __m512i place, __m512i ready) {
    __mmask16 it = _mm512_cmpeq_epi32_mask(half.place, place);
    half.ready = _mm512_mask_max_epi32(half.ready, it, half.ready, ready);
    half.seen |= it;
  }
};

HL_OWN void see_stations(const Around& around, const Sight& sight, int32_t tick, Stations& memory) {
  Half upper = Half::of(memory, 0), lower = Half::of(memory, 16);
  const __m512i top = ints_of(sight.here.row - sight.radius), left = ints_of(sight.here.col - sight.radius);
  const uint32_t count = around.stations.count;
  uint32_t useful = 0;
  alignas(64) int32_t places[16], ready[max_tokens + 16];
  for (uint32_t first = 0; first == 0 || first < count; first += 16) {
    __m512i location = _mm512_cvtepu8_epi32(load_16(around.stations.at + first));
    __m512i row = _mm512_add_epi32(top, _mm512_srli_epi32(location, 4));
    __m512i col = _mm512_add_epi32(left, location & ints_of(15));
    __m512i place = _mm512_slli_epi32(row & ints_of(255), 8) | (col & ints_of(255));
    __m512i wait = _mm512_cvtepu8_epi32(load_16(around.waits.at + first));
    __mmask16 of_use = _mm_cmpneq_epi8_mask(load_16(around.kinds.at + first), _mm_set1_epi8(-1));
    static_assert(Briefing::useless == List::filler && Briefing::useless == 0xFF);
    store(places, _mm512_mask_mov_epi32(ints_of(Half::nowhere), of_use, place));
    store(ready + first, _mm512_add_epi32(ints_of(tick), wait));
    // All of them, each time: what is said of later stations is overwritten, and said again with them.
    for (uint32_t k = 0; k < around.spent_count; ++k) ready[around.spent[k]] = never;
    for (uint32_t k = 0; k < 6 || (k < 16 && first + k < count); ++k) {
      Half::see(upper, ints_of(places[k]), ints_of(ready[first + k]));
      Half::see(lower, ints_of(places[k]), ints_of(ready[first + k]));
    }
    useful += count_of(of_use);
  }
  if (count_of(upper.seen) + count_of(lower.seen) != useful) {
    meet_stations({around.stations.at, around.kinds.at, ready, count}, sight, memory);
    return;
  }
  store(memory.ready, upper.ready);
  store(memory.ready + 16, lower.ready);
}

}  // namespace

// It cannot where stations and cooldowns do not match, which is where tokens come in another order.
bool look_quickly(const Config& c, const uint8_t* token, int32_t tick, Stations& memory, Sight& sight) {
  const uint8_t* end = token + c.tokens * 3;
  const int radius = static_cast<int>(c.radius);
  sight.radius = radius;
  Around around;
  Tokens some = read(token, end);
  uint64_t own = where(some.location, global_location) | where(some.location, radius * 17);
  see_self(some, own, sight);
  see_tokens(around, some, own);
  see_tokens(around, read(token + 3 * at_once, end), 0);
  for (uint32_t k = 2 * at_once; k == around.tokens; k += at_once) {
    see_tokens(around, read(token + 3 * k, end), 0);
  }
  sort_objects(around, c.briefing);
  see_objects(around, sight);
  bool whole = around.tokens != c.tokens;
  sight.clear = whole ? 2 * radius : clear_until(end[-3], radius);
  bool cut = !whole && around.stations.count == around.waits.count + 1;
  if (cut) around.waits.at[around.waits.count++] = 0;  // the last one's cooldown was dropped
  if (around.stations.count != around.waits.count) return false;
  see_stations(around, sight, tick, memory);
  return true;
}

}  // namespace hl::grid
