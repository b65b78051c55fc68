import { existsSync, mkdirSync } from "node:fs";
import { BINARY, CHROMIUM, SHOTS } from "./places.ts";

/** Says what is missing before any test runs. */
export default function setup(): void {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is not there: apt-get install chromium`);
  if (!existsSync(BINARY)) throw new Error(`${BINARY} is not there: cargo build -p coloc, or COLOC_BINARY`);
  mkdirSync(SHOTS, { recursive: true });
}
