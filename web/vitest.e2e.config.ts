import { defineConfig } from "vitest/config";

// One browser and a few daemons on two cores: files run one after another.
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 90_000,
    globalSetup: "test/e2e/kit/global.ts",
  },
});
