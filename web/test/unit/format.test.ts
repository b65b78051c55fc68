import { describe, expect, it } from "vitest";
import { NONE, basis, change, clock, duration, energy, gib, offBy, percent, span, times } from "../../src/model/format.ts";

const at = (h: number, m: number, day = 18): number => new Date(2026, 10, day, h, m).getTime() / 1000;

describe("numbers", () => {
  it("says a dash for what is unknown, never a zero", () => {
    for (const text of [gib(null), percent(undefined), times(null), span(undefined), clock(null, 0), energy(null)[0], duration(null)[0], offBy(1, 0)]) expect(text).toBe(NONE);
    expect(gib(0)).toBe("0.0");
  });
  it("gives spans in two units at most", () => {
    expect([0, 12, 59.6, 1800, 4920, 86_400 + 3 * 3600].map(span)).toEqual(["0 s", "12 s", "1 min", "30 min", "1 h 22", "1 d 3 h"]);
    expect(span(-5)).toBe("0 s");
  });
  it("tells days apart by the calendar, not by 24 hours", () => {
    expect(clock(at(14, 32), at(9, 0))).toBe("14:32");
    expect(clock(at(0, 40, 19), at(23, 59))).toBe("00:40 +1 d");
    expect(clock(at(23, 59, 17), at(0, 1))).toBe("23:59 −1 d");
    expect(clock(at(10, 0, 1), at(10, 0))).toBe("1 Nov");
  });
  it("compares with a base", () => {
    expect([change(1.23, 1), change(0.89, 1), change(2.4, 1), change(1.001, 1), change(null, 1)]).toEqual(["+23 %", "−11 %", "×2.4", "±0 %", ""]);
    expect(offBy(97.4, 100)).toBe("−2.6 %");
  });
  it("chooses a unit that leaves digits to read", () => {
    expect(energy(3.6e6 * 98.44)).toEqual(["98.4", "kWh"]);
    expect(energy(3600 * 5)).toEqual(["5.0", "Wh"]);
    expect(duration(19 * 60)).toEqual(["19", "min"]);
    expect(duration(3.42 * 3600)).toEqual(["3.42", "h"]);
  });
  it("says what an expectation rests on in a word", () => {
    expect(basis("run time is the median of 7 earlier runs; other tasks: 3 by time limit")).toBe("7 runs");
    expect(basis("run time as of 1 earlier run")).toBe("1 run");
    expect(basis("run time is the time limit, the most it can be")).toBe("limit");
    expect(basis("end unknown: no time limit and no history")).toBe("nothing");
    expect(basis("unknown: it is held")).toBe("nothing");
  });
});
