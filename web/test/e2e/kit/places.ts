import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const BINARY = process.env.COLOC_BINARY ?? join(TARGET, "debug/coloc");
/** Screenshots, kept to be looked at. */
export const SHOTS = join(TARGET, "web-shots");
/** A busy machine of two cores is allowed tenfold of what a budget says. */
export const PATIENCE = 10;
