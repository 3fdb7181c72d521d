#!/bin/sh
# Makes the demo's clips from ffmpeg's synthetic sources: run it here, with
# Debian's ffmpeg (libx264) and fonts-dejavu-core.
#
# Each clip loops without a seam:
# - 6.4 s is 160 pictures at 25 Hz and 300 AAC frames of 1024 samples at 48 kHz,
#   so picture and sound end together, to the tick;
# - GOPs are closed and hold no B pictures: decoding order is display order;
# - whatever moves or sounds repeats after 6.4 s or a whole part of it. The
#   sound is encoded for longer than that and cut out of the middle, so that
#   the last AAC frame runs on into the first as any frame does into the next.
set -eu

font=${FONT:-/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf}
seconds=6.4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# clip FILE NAME CRF VIDEO AUDIO: VIDEO is a filter graph, AUDIO an expression
# of the time t.
clip() {
	file=$1 name=$2 crf=$3 video=$4 audio=$5

	ffmpeg -v error -y -f lavfi -i "$video,drawtext=fontfile=$font:text=$name:fontsize=36:fontcolor=white:borderw=3:x=(w-tw)/2:y=h-60" \
		-t $seconds -pix_fmt yuv420p -c:v libx264 -preset veryslow -profile:v main -bf 0 -crf "$crf" \
		-x264-params keyint=40:min-keyint=40:scenecut=0:open-gop=0:threads=1 "$work/v.h264"

	ffmpeg -v error -y -f lavfi -i "aevalsrc=$audio:s=48000:d=8" -c:a aac -b:a 32k -fflags +bitexact "$work/long.aac"
	# The first frames still ramp up: leave 10 out, then take 300.
	ffmpeg -v error -y -i "$work/long.aac" -c copy -bsf:a "noise=amount=0:drop=lt(n\,10)" -frames:a 300 "$work/a.aac"

	ffmpeg -v error -y -r 25 -i "$work/v.h264" -i "$work/a.aac" -map 0:v -map 1:a -c copy -fflags +bitexact \
		-metadata service_name="$name" -metadata service_provider=zapcast \
		-f mpegts -pat_period 0.2 -sdt_period 1 -pcr_period 40 -pes_payload_size 900 "$file"
}

clip one.ts "zapcast 1" 37 \
	"testsrc2=size=480x270:rate=25" \
	"0.2*sin(2*PI*440*t)*(1+sin(2*PI*t*10/6.4))/2"

clip two.ts "zapcast 2" 28 \
	"smptehdbars=size=480x270:rate=25[b];color=white:size=40x40:rate=25[s];[b][s]overlay=x='(W-w)/2*(1+sin(2*PI*t/3.2))':y='(H-h)/2*(1+cos(2*PI*t/3.2))'" \
	"0.2*sin(2*PI*550*t)*(1+sin(2*PI*t*5/6.4))/2"

clip three.ts "zapcast 3" 26 \
	"gradients=size=480x270:rate=25:seed=7:speed=0.02:nb_colors=4:c0=0x203080:c1=0xc04060:c2=0xf0c040:c3=0x30a070" \
	"0.2*sin(2*PI*660*t)*(1+sin(2*PI*t*20/6.4))/2"
