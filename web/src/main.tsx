import { render } from "preact";
import { App } from "./app.tsx";
import { listenToKeys } from "./keys.ts";
import { followAddress } from "./route.ts";
import { startClock } from "./store/live.ts";
import { open } from "./store/session.ts";
import { openTheme } from "./theme.ts";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/views.css";
import "./styles/uplot.css";

openTheme();
followAddress();
startClock();
listenToKeys();
// What the fragment holds is read before the first view is drawn: a code must not stay in the address.
void open();
const app = document.getElementById("app")!;
app.replaceChildren();
render(<App />, app);
