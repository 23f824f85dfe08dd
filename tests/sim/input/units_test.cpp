#include "sim/input/units.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

namespace orrery {
namespace {

struct TimeText {
  const char* text;
  Time time;
};

TEST_CASE("A time is read in every unit that people write") {
  const TimeText table[] = {
      {"7 ps", 7_ps},           {"2 ns", 2_ns},           {"3.5 us", 3500_ns},
      {"3.5 \u00B5s", 3500_ns}, {"3.5 \u03BCs", 3500_ns}, {"0.3 ns", 300_ps},
      {"12 ms", 12_ms},         {"1.25 s", 1250_ms},      {"2 min", 120_s},
      {"1 h", 3600_s},          {"1 hour", 3600_s},       {"2 hours", 7200_s},
      {"1 d", 86400_s},         {"1 day", 86400_s},       {"106 days", 9158400_s},
      {"1e3 us", 1_ms},         {"  4us\t", 4_us},        {"0 s", 0_s},
  };
  for (const TimeText& row : table) {
    CAPTURE(row.text);
    const auto time = parse_quantity<Time>(row.text);
    REQUIRE(time.has_value());
    CHECK(*time == row.time);
  }
}

struct SizeText {
  const char* text;
  std::int64_t bytes;
};

TEST_CASE("A size tells decimal from binary prefixes") {
  const SizeText table[] = {
      {"8 B", 8},
      {"1 kB", 1000},
      {"1 KB", 1000},
      {"1 KiB", 1024},
      {"1.5 KiB", 1536},
      {"3 MB", 3'000'000},
      {"1 MiB", 1'048'576},
      {"80 GB", 80'000'000'000},
      {"80 GiB", 85'899'345'920},
      {"1 TB", 1'000'000'000'000},
      {"1 TiB", 1'099'511'627'776},
      {"1 PiB", 1'125'899'906'842'624},
      // 79.6 x 2^30 = 85469849190.4: to the nearest byte.
      {"79.6 GiB", 85'469'849'190},
  };
  for (const SizeText& row : table) {
    CAPTURE(row.text);
    const auto size = parse_quantity<Bytes>(row.text);
    REQUIRE(size.has_value());
    CHECK(size->count() == row.bytes);
  }
}

struct RateText {
  const char* text;
  double per_second;
};

TEST_CASE("A rate tells bits from bytes") {
  const RateText table[] = {
      {"450 GB/s", 450e9},     {"800 Gb/s", 100e9},    {"800 Gbit/s", 100e9}, {"800 Gbps", 100e9},
      {"1 GiB/s", 1073741824}, {"3.35 TB/s", 3.35e12}, {"8 b/s", 1},          {"1 B/s", 1},
      {"900 GBps", 900e9},     {"25 MB/s", 25e6},
  };
  for (const RateText& row : table) {
    CAPTURE(row.text);
    const auto rate = parse_quantity<Bandwidth>(row.text);
    REQUIRE(rate.has_value());
    CHECK(rate->count() == row.per_second);
  }
}

TEST_CASE("Work, power, energy, money and clocks are read with their prefixes") {
  CHECK(parse_quantity<Flops>("2 TFLOP") == Flops{2'000'000'000'000});
  CHECK(parse_quantity<Flops>("9 EFLOP") == Flops{9'000'000'000'000'000'000});
  CHECK(parse_quantity<FlopRate>("312 TFLOP/s") == 312_TFLOPS);
  CHECK(parse_quantity<FlopRate>("312 TFLOPS") == 312_TFLOPS);
  CHECK(parse_quantity<FlopRate>("1.5 PFLOP/s") == 1500_TFLOPS);
  CHECK(parse_quantity<FlopRate>("90 GFLOP/s") == FlopRate{90e9});
  CHECK(parse_quantity<Power>("700 W") == Power{700});
  CHECK(parse_quantity<Power>("10.2 kW") == Power{10200});
  CHECK(parse_quantity<Energy>("2 kWh") == Energy{7.2e6});
  CHECK(parse_quantity<Energy>("5 MJ") == Energy{5e6});
  CHECK(parse_quantity<Money>("$3") == Money{3});
  CHECK(parse_quantity<Money>("$ 2.5M") == Money{2.5e6});
  CHECK(parse_quantity<Price>("$2.50/h") == Price{2.5});
  CHECK(parse_quantity<Price>("$2.50 /hour") == Price{2.5});
  CHECK(parse_quantity<Frequency>("1.41 GHz") == Frequency{1.41e9});
}

TEST_CASE("A text without its unit, with a wrong one or with more is no quantity") {
  for (const char* text :
       {"", " ", "450", "GB/s", "450 GB", "450 gb/s", "450 GB/s!", "450 GB/s 2", "4 5 GB/s",
        "0x10 GB/s", "450,5 GB/s", "+450 GB/s", "1e GB/s", ". GB/s", "450 G", "$450 GB/s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_quantity<Bandwidth>(text).has_value());
  }
  CHECK_FALSE(parse_quantity<Bytes>("80 Gb").has_value());
  CHECK_FALSE(parse_quantity<Time>("5 m").has_value());
  CHECK_FALSE(parse_quantity<Price>("2.50/h").has_value());
  CHECK_FALSE(parse_quantity<Price>("$2.50").has_value());
  CHECK_FALSE(parse_quantity<Money>("3").has_value());
  CHECK_FALSE(parse_quantity<Money>("$").has_value());
  CHECK_FALSE(parse_quantity<Bandwidth>(std::string_view{"450 GB/s\0", 9}).has_value());
}

TEST_CASE("What is negative, not finite or beyond the type is no quantity") {
  for (const char* text : {"-1 s", "-0 s", "inf s", "nan s", "1e999 s", "infinity s", "-$1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_quantity<Time>(text).has_value());
  }
  CHECK_FALSE(parse_quantity<Money>("$-3").has_value());
  CHECK_FALSE(parse_quantity<Power>("1e308 GW").has_value());
  // 2^63 ps = 9223372036854775808 ps is the first time that 64 bits do not hold; 106.75 days.
  CHECK(parse_quantity<Time>("9223372036854775807 ps") ==
        Time{std::numeric_limits<std::int64_t>::max()});
  CHECK_FALSE(parse_quantity<Time>("9223372036854775808 ps").has_value());
  CHECK_FALSE(parse_quantity<Time>("107 days").has_value());
  CHECK_FALSE(parse_quantity<Bytes>("8192 PiB").has_value());
  CHECK(parse_quantity<Bytes>("8191 PiB").has_value());
}

TEST_CASE("A rate that carries nothing is refused, for times are sizes over rates") {
  CHECK_FALSE(parse_quantity<Bandwidth>("0 GB/s").has_value());
  CHECK_FALSE(parse_quantity<Bandwidth>("7 b/s").has_value());
  CHECK_FALSE(parse_quantity<FlopRate>("0 TFLOP/s").has_value());
  CHECK_FALSE(parse_quantity<FlopRate>("1e-300 TFLOP/s").has_value());
}

TEST_CASE("Each quantity has an example that it can read itself") {
  CHECK(expected_form<Time>() == R"(a time such as "3.5 us")");
  CHECK(expected_form<Bytes>() == R"(a size such as "80 GiB")");
  CHECK(expected_form<Flops>() == R"(work such as "312 TFLOP")");
  CHECK(expected_form<Bandwidth>() == R"(a rate such as "450 GB/s")");
  CHECK(expected_form<FlopRate>() == R"(a rate such as "312 TFLOP/s")");
  CHECK(expected_form<Power>() == R"(a power such as "700 W")");
  CHECK(expected_form<Energy>() == R"(an energy such as "3 kWh")");
  CHECK(expected_form<Money>() == R"(an amount such as "$3")");
  CHECK(expected_form<Price>() == R"(a price such as "$2.50/h")");
  CHECK(expected_form<Frequency>() == R"(a frequency such as "1.4 GHz")");
}

TEST_CASE("Quantities are printed with three digits and the fitting unit") {
  CHECK(format(0_s) == "0 ps");
  CHECK(format(1_ps) == "1 ps");
  CHECK(format(999_ns) == "999 ns");
  CHECK(format(999'600_ps) == "1 us");  // three digits round it up to the next unit
  CHECK(format(2'344_ms) == "2.34 s");
  CHECK(format(3'500_ns) == "3.5 us");
  CHECK(format(Time{} - 12_ms) == "-12 ms");
  CHECK(format(90_s) == "1.5 min");
  CHECK(format(86400_s) == "1 d");
  CHECK(format(Bytes{1023}) == "1023 B");
  CHECK(format(80_GiB) == "80 GiB");
  CHECK(format(80_GB) == "74.5 GiB");  // 80e9 / 2^30 = 74.506
  CHECK(format(450_GBps) == "450 GB/s");
  CHECK(format(Bandwidth{1.25e12}) == "1.25 TB/s");
  CHECK(format(312_TFLOPS) == "312 TFLOP/s");
  CHECK(format(Flops{2'500'000'000}) == "2.5 GFLOP");
  CHECK(format(Power{10200}) == "10.2 kW");
  CHECK(format(Energy{7.2e9}) == "2 MWh");
  CHECK(format(Frequency{1.41e9}) == "1.41 GHz");
  CHECK(format(Money{0.001234}) == "$0.00123");
  CHECK(format(Money{12.345}) == "$12.35");
  CHECK(format(Money{1234567.4}) == "$1,234,567");
  CHECK(format(Money{-3}) == "-$3.00");
  CHECK(format(Price{2.5}) == "$2.50/h");
  CHECK(format(Bandwidth{std::numeric_limits<double>::infinity()}) == "inf B/s");
}

/// Three digits keep at least 1 part in 200 (9.995 is the worst: "10.00" against "9.99").
template <class Q>
void check_round_trip(Q quantity) {
  const std::string text = format(quantity);
  CAPTURE(text);
  const auto back = parse_quantity<Q>(text);
  REQUIRE(back.has_value());
  const double error = ratio(*back, quantity) - 1;
  CHECK(std::abs(error) <= 0.005);
}

TEST_CASE("What is printed can be read again, to three digits") {
  for (std::int64_t count = 1; count < std::int64_t{1} << 60; count = count * 3 + count / 7 + 1) {
    check_round_trip(Time{count});
    check_round_trip(Bytes{count});
    check_round_trip(Flops{count});
    const auto number = static_cast<double>(count);
    check_round_trip(Bandwidth{number});
    check_round_trip(FlopRate{number});
    check_round_trip(Power{number});
    check_round_trip(Energy{number});
    check_round_trip(Frequency{number});
  }
}

}  // namespace
}  // namespace orrery
