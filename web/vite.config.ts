import { defineConfig } from "vite";

// The built page must be the same on every machine: no dates, no absolute paths, nothing from the environment.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
  },
  server: { proxy: { "/v1": process.env.COLOC_WEB ?? "http://127.0.0.1:7451" } },
});
